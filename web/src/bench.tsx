// A run that can be changed: its settings, what comes of them at once, and the run before for comparison.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Channel, Network, Run } from "./data";
import { mbps, milliseconds, percentile95, took } from "./format";
import { Group, groups } from "./knob";
import { planWith, settingsOf, stands, text, type Knob, type Setting, type Settings } from "./knobs";
import type { Lab, Shown } from "./lab";
import { RunView } from "./run";
import { changesOf, eventsOf, inWords, planWithEvents, settingsOfEvents, written, type EventKinds, type Scheduled } from "./schedule";
import { Schedule } from "./scheduling";

export interface Preset {
  /** As `polypath run` takes it; null: a plan that was opened. */
  command: string | null;
  name: string;
  title: string;
  question: string;
  /** What the reader may try: a text, and the settings that do it. */
  tries: { text: string; settings: Settings }[];
  plan: { duration_ns: number; events: unknown[]; links: { name: string; forward: PlanChannel; backward: PlanChannel }[]; nodes: { name: string }[] };
  network: Network | null;
  marks: { t: number; text: string }[];
  knobs: Knob[];
  events: EventKinds | null;
}

interface PlanChannel {
  rate_bps?: number | null;
  delay_ns?: number;
  loss?: { kind: string; probability?: number };
  queue?: { packets?: number | null };
}

interface Ran {
  shown: Shown;
  took_s: number;
  preset: Preset;
  chosen: Chosen;
}

/** What a person has chosen. */
export interface Chosen {
  settings: Settings;
  schedule: Scheduled[];
}

/** As the preset is. */
export const NOTHING: Chosen = { settings: {}, schedule: [] };

/** What an address names. */
export function chosenOf(parameters: URLSearchParams, preset: Preset): Chosen {
  return { settings: settingsOf(parameters, preset.knobs), schedule: eventsOf(parameters, preset.events, preset.plan) };
}

/** Adds to an address what is chosen. */
export function address(parameters: URLSearchParams, preset: Preset, { settings, schedule }: Chosen): URLSearchParams {
  for (const { key } of preset.knobs) if (settings[key] !== undefined) parameters.set(key, `${settings[key]}`);
  for (const event of schedule) parameters.append("event", written(event));
  return parameters;
}

function planOf(preset: Preset, { settings, schedule }: Chosen): Preset["plan"] {
  return planWithEvents(planWith(preset.plan, preset.knobs, settings) as Preset["plan"], preset.events, schedule);
}

/** What a person types for the same run. */
function command(preset: Preset, { settings, schedule }: Chosen): string {
  const given = preset.knobs.flatMap((knob) => {
    const setting = settings[knob.key];
    return setting === undefined ? [] : [`${knob.key}=${text(knob, setting)}`];
  });
  const all = [...given, ...settingsOfEvents(preset.events, schedule)];
  return `polypath run ${preset.command}${all.map((each) => ` --set '${each}'`).join("")}`;
}

/** The network with what the plan says of its links, in the colours of the paths that were used. */
function networkOf(preset: Preset, plan: Preset["plan"], paths: string[]): Network | null {
  const { network } = preset;
  if (!network) return null;
  const channel = (old: Channel, of: PlanChannel): Channel => ({
    ...old,
    rate_bps: of.rate_bps ?? null,
    delay_ns: of.delay_ns ?? 0,
    loss: of.loss?.kind === "random" ? (of.loss.probability ?? null) : null,
    queue_packets: of.queue?.packets ?? null,
  });
  return {
    ...network,
    links: network.links.map((link, index) => {
      const path = paths.indexOf(link.name);
      const of = plan.links[index];
      if (!of) return link;
      return {
        ...link,
        path: path < 0 ? null : path,
        forward: channel(link.forward, of.forward),
        backward: channel(link.backward, of.backward),
      };
    }),
  };
}

function runOf({ shown, preset, chosen }: Ran): Run {
  const plan = planOf(preset, chosen);
  const seed = chosen.settings["seed"] ?? preset.knobs.find((knob) => knob.key === "seed")?.value ?? 0;
  const { paths, connections, ...rest } = shown;
  return {
    ...rest,
    connections: connections.map((each) => ({ ...each, notes: [], causes: [] })),
    name: preset.name,
    short: preset.name,
    scenario: preset.name,
    lab: null,
    folder: null,
    values: {},
    seed: Number(seed),
    engine: "sim",
    interrupted: false,
    plan_sha256: "",
    versions: {},
    further: [],
    network: networkOf(preset, plan, paths),
    changes: changesOf(plan),
    marks: [...preset.marks, ...chosen.schedule.map((event) => ({ t: event.at_s, text: inWords(preset.events, event) }))].sort((a, b) => a.t - b.t),
  };
}

interface Props {
  lab: Lab;
  preset: Preset;
  chosen: Chosen;
  choose: (chosen: Chosen) => void;
  /** What stands beside saving the plan. */
  children?: ComponentChildren;
}

/** Another preset needs another one of these. */
export function Bench({ lab, preset, chosen, choose, children }: Props) {
  const [ran, setRan] = useState<Ran | null>(null);
  const [before, setBefore] = useState<Ran | null>(null);
  const [progress, setProgress] = useState<string>("");
  const [failed, setFailed] = useState<string | null>(null);
  const { settings, schedule } = chosen;

  useEffect(() => {
    const plan = planOf(preset, chosen);
    const end = plan.duration_ns / 1e9;
    setProgress("starts");
    lab.run(JSON.stringify(plan), (heard) => {
      if (heard.kind === "progress") {
        setProgress(`${heard.now_s.toFixed(1)} of ${end.toFixed(1)} s`);
        return;
      }
      setProgress("");
      if (heard.kind === "failed") {
        setFailed(heard.reason);
        return;
      }
      setFailed(null);
      setRan((last) => {
        setBefore(last);
        return { shown: heard.shown, took_s: heard.took_s, preset, chosen };
      });
    });
  }, [chosen]);

  const change = (key: string, value: Setting) => {
    const knob = preset.knobs.find((each) => each.key === key);
    const { [key]: _, ...others } = settings;
    choose({ ...chosen, settings: knob && stands(knob, others) === value ? others : { ...others, [key]: value } });
  };
  const run = useMemo(() => ran && runOf(ran), [ran]);
  const past = useMemo(() => before && runOf(before), [before]);
  return (
    <>
      <section class="playground" aria-label="Settings and what comes of them">
        <form class="knobs" aria-label="Settings" onSubmit={(event) => event.preventDefault()}>
          {groups(preset.knobs).map(([name, knobs]) => (
            <Group key={`${preset.name}/${name}`} {...{ name, knobs, settings, change }} />
          ))}
          {preset.events && (
            <Schedule
              kinds={preset.events}
              links={preset.plan.links.map(({ name }) => name).filter((name) => preset.events?.kinds.some((kind) => kind.links.includes(name)))}
              end={preset.plan.duration_ns / 1e9}
              ran={run?.end_s ?? preset.plan.duration_ns / 1e9}
              schedule={schedule}
              set={(changed) => choose({ ...chosen, schedule: changed })}
            />
          )}
          <button
            type="button"
            disabled={Object.keys(settings).length === 0 && schedule.length === 0}
            onClick={() => choose(NOTHING)}
          >
            Reset
          </button>
        </form>
        <p class="status" role="status" data-state={failed ? "failed" : progress ? "running" : "done"}>
          {failed ? (
            <span class="warning">{failed}</span>
          ) : progress ? (
            <>
              running: {progress}{" "}
              <button type="button" onClick={() => (lab.stop(), setProgress(""))}>
                Stop
              </button>
            </>
          ) : (
            ran && `ran in ${took(ran.took_s)}`
          )}
        </p>
        <p>
          {preset.command !== null && <code data-command="">{command(preset, chosen)}</code>}{" "}
          <button type="button" onClick={() => save(`${preset.name.replaceAll("/", "-")}.plan.json`, planOf(preset, chosen))}>
            Save the plan
          </button>{" "}
          {children}
        </p>
        {ran && before && <Compared now={ran.shown} then={before.shown} />}
      </section>
      {run && (
        <RunView
          labs={[]}
          run={run}
          before={past || null}
          pick={(what, number) => {
            const name = what === "link" ? `link ${preset.plan.links[number]?.name}` : `host ${preset.plan.nodes[number]?.name}`;
            const group = document.getElementById(`group-${name}`) ?? document.getElementById("group-transport");
            group?.querySelector("details")?.setAttribute("open", "");
            group?.scrollIntoView({ block: "center" });
            group?.querySelector<HTMLElement>("input, select")?.focus();
          }}
        />
      )}
    </>
  );
}

function save(name: string, plan: unknown): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(plan)], { type: "application/json" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

const BESIDE: { title: string; of: (each: Shown["summary"]["connections"][number]) => string; there: (each: Shown["summary"]["connections"][number]) => boolean }[] = [
  { title: "Mbps", of: (each) => mbps(each.goodput_mbps), there: (each) => each.goodput_mbps !== null },
  { title: "time", of: (each) => took(each.completion_s), there: (each) => each.completion_s !== null },
  { title: "median delay", of: (each) => milliseconds(each.requests.median_s), there: (each) => each.requests.count > 0 },
  { title: "95th percentile", of: (each) => percentile95(each.requests), there: (each) => percentile95(each.requests) !== "" },
];

function Compared({ now, then }: { now: Shown; then: Shown }) {
  const [connections, old] = [now.summary.connections.slice(0, 8), then.summary.connections];
  const columns = BESIDE.filter(({ there }) => connections.some(there) || old.some(there));
  return (
    <table class="compared">
      <caption>beside the run before</caption>
      <thead>
        <tr>
          <th scope="col">connection</th>
          {columns.flatMap(({ title }) => [
            <th scope="col" class="number" key={title}>
              {title}
            </th>,
            <th scope="col" class="number" key={`${title} before`}>
              before
            </th>,
          ])}
        </tr>
      </thead>
      <tbody>
        {connections.map((each, index) => {
          const before = old[index];
          return (
            <tr key={index}>
              <th scope="row">{each.name}</th>
              {columns.flatMap(({ title, of }) => [
                <td class="number" key={title}>
                  {of(each)}
                </td>,
                <td class="number" key={`${title} before`}>
                  {before ? of(before) : ""}
                </td>,
              ])}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
