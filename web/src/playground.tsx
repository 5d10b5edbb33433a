// The playground: a lab that runs in the page. What is changed runs at once, and everything below follows.

import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { usePalette } from "./colour";
import { complaining } from "./complaint";
import type { Channel, Network, Run } from "./data";
import { mbps, milliseconds, percentile95, took } from "./format";
import { planWith, settingsOf, stands, text, type ChoiceKnob, type Knob, type NumberKnob, type Setting, type Settings } from "./knobs";
import { Lab, type Shown } from "./lab";
import { RunView } from "./run";
import { changesOf, eventsOf, inWords, planWithEvents, settingsOfEvents, written, type EventKinds, type Scheduled } from "./schedule";
import { Scrubber } from "./scrubber";
import { theme, toggleTheme, useValue, watchTheme } from "./store";

interface Preset {
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

interface Playground {
  version: string;
  palette: string[];
  presets: Preset[];
}

interface Ran {
  shown: Shown;
  took_s: number;
  chosen: Chosen;
}

/** What a person has chosen. */
interface Chosen {
  preset: number;
  settings: Settings;
  schedule: Scheduled[];
}

/** What the address names. */
function addressed(presets: Preset[]): Chosen {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const named = presets.findIndex((each) => each.name === parameters.get("lab"));
  const number = Math.max(0, named);
  const preset = presets[number] as Preset;
  return { preset: number, settings: settingsOf(parameters, preset.knobs), schedule: eventsOf(parameters, preset.events, preset.plan) };
}

function hashOf(preset: Preset, { settings, schedule }: Chosen): string {
  const parameters = new URLSearchParams({ lab: preset.name });
  for (const { key } of preset.knobs) if (settings[key] !== undefined) parameters.set(key, `${settings[key]}`);
  for (const event of schedule) parameters.append("event", written(event));
  return `#${parameters.toString()}`;
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

function runOf(preset: Preset, { shown, chosen }: Ran): Run {
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

function App({ page }: { page: Playground }) {
  const [presets, setPresets] = useState(page.presets);
  const lab = useMemo(() => new Lab(), []);
  const [chosen, choose] = useState(() => addressed(presets));
  const [ran, setRan] = useState<Ran | null>(null);
  const [before, setBefore] = useState<Ran | null>(null);
  const [progress, setProgress] = useState<string>("");
  const [failed, setFailed] = useState<string | null>(null);
  const of = useRef<number>(-1);
  const current = useValue(theme);
  const preset = presets[chosen.preset] as Preset;
  const { settings, schedule } = chosen;

  useEffect(() => {
    const moved = () => choose(addressed(presets));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, [presets]);

  useEffect(() => {
    const hash = hashOf(preset, chosen);
    if (location.hash !== hash) history.replaceState(null, "", hash);
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
      const same = of.current === chosen.preset;
      of.current = chosen.preset;
      setRan((last) => {
        setBefore(same ? last : null);
        return { shown: heard.shown, took_s: heard.took_s, chosen };
      });
    });
  }, [chosen]);

  const change = (key: string, value: Setting) => {
    const knob = preset.knobs.find((each) => each.key === key);
    const { [key]: _, ...others } = settings;
    choose({ ...chosen, settings: knob && stands(knob, others) === value ? others : { ...others, [key]: value } });
  };
  const shown = of.current === chosen.preset ? ran : null;
  const run = useMemo(() => shown && runOf(preset, shown), [shown]);
  const past = useMemo(() => before && of.current === chosen.preset && runOf(preset, before), [before]);
  return (
    <>
      <header>
        <div class="head">
          <h1>Polypath playground</h1>
          <button type="button" onClick={toggleTheme} aria-label={`Change to ${current === "dark" ? "light" : "dark"}`}>
            {current === "dark" ? "light" : "dark"}
          </button>
        </div>
        <label>
          lab{" "}
          <select value={String(chosen.preset)} onChange={(event) => choose({ preset: Number(event.currentTarget.value), settings: {}, schedule: [] })} data-knob="lab">
            {presets.map((each, index) => (
              <option value={String(index)} key={each.name}>
                {each.name}: {each.title}
              </option>
            ))}
          </select>
        </label>
        <p class="question">{preset.question}</p>
        {preset.tries.length > 0 && (
          <ul class="tries">
            {preset.tries.map((each, index) => (
              <li key={index}>
                {each.text}{" "}
                <button type="button" onClick={() => choose({ ...chosen, settings: each.settings })}>
                  try it
                </button>
              </li>
            ))}
          </ul>
        )}
      </header>
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
            onClick={() => choose({ ...chosen, settings: {}, schedule: [] })}
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
            shown && `ran in ${took(shown.took_s)}`
          )}
        </p>
        <p>
          {preset.command !== null && <code data-command="">{command(preset, chosen)}</code>}{" "}
          <button type="button" onClick={() => save(`${preset.name.replaceAll("/", "-")}.plan.json`, planOf(preset, chosen))}>
            Save the plan
          </button>{" "}
          <label class="file">
            Open a plan{" "}
            <input
              type="file"
              accept=".json,application/json"
              onChange={(event) => {
                const file = event.currentTarget.files?.[0];
                if (!file) return;
                openedPlan(file).then(
                  (preset) => {
                    setPresets([...presets, preset]);
                    choose({ preset: presets.length, settings: {}, schedule: [] });
                  },
                  (reason: unknown) => setFailed(`${file.name}: ${reason instanceof Error ? reason.message : String(reason)}`),
                );
              }}
            />
          </label>
        </p>
        {shown && before && past && <Compared now={shown.shown} then={before.shown} />}
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
      <footer>
        <p class="quiet">
          polypath {page.version}. The simulator runs in this page; nothing is sent anywhere. The same plan gives the same recording everywhere:
          its hash stands below “Where this comes from”.
        </p>
      </footer>
      <Scrubber key={chosen.preset} />
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

/** A file's plan, as a run's folder and `Save the plan` have it. It has no knobs: they are found from a scenario. */
async function openedPlan(file: File): Promise<Preset> {
  const plan = JSON.parse(await file.text()) as Partial<Preset["plan"]> | null;
  if (!plan || !Array.isArray(plan.links) || !Array.isArray(plan.nodes) || !Array.isArray(plan.events) || typeof plan.duration_ns !== "number")
    throw new Error("this is no plan; open the plan.json of a run's folder, or one that this page has saved");
  return { name: file.name, title: "a plan that was opened", question: "", command: null, tries: [], plan: plan as Preset["plan"], network: null, marks: [], knobs: [], events: null };
}

interface ScheduleProps {
  kinds: EventKinds;
  links: string[];
  /** Seconds that the run may take, and that it took. */
  end: number;
  ran: number;
  schedule: Scheduled[];
  set: (schedule: Scheduled[]) => void;
}

/** Events that are added to the run's own. */
function Schedule({ kinds, links, end, ran, schedule, set }: ScheduleProps) {
  const change = (index: number, part: Partial<Scheduled>) => set(schedule.map((event, at) => (at === index ? { ...event, ...part } : event)));
  const of = (name: string) => kinds.kinds.find((kind) => kind.name === name);
  const suiting = (link: string) => kinds.kinds.filter((kind) => kind.links.includes(link));
  /** An event of a link, of the kind that it had if that suits. */
  const moved = (event: Scheduled, link: string): Partial<Scheduled> => {
    const kind = suiting(link).find(({ name }) => name === event.kind) ?? suiting(link)[0];
    return kind?.name === event.kind ? { link } : { link, kind: kind?.name ?? "", value: kind?.value ?? null };
  };
  return (
    <fieldset id="group-events" class="events">
      <legend>events</legend>
      {schedule.map((event, index) => {
        const kind = of(event.kind);
        return (
          <p key={index}>
            <label>
              at{" "}
              <Typed min={0} max={end} value={event.at_s} data-event="at" take={(at_s) => change(index, { at_s })} />{" "}
              s
            </label>{" "}
            <select aria-label="link" value={event.link} data-event="link" onChange={(input) => change(index, moved(event, input.currentTarget.value))}>
              {links.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>{" "}
            <select
              aria-label="what happens"
              value={event.kind}
              data-event="kind"
              onChange={(input) => change(index, { kind: input.currentTarget.value, value: of(input.currentTarget.value)?.value ?? null })}
            >
              {suiting(event.link).map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>{" "}
            {kind?.unit && (
              <label>
                <Typed
                  min={0}
                  max={kind.most ?? 0}
                  value={event.value}
                  data-event="value"
                  aria-label={`${kind.name} in ${kind.unit}`}
                  take={(value) => change(index, { value })}
                />{" "}
                {kind.unit}
              </label>
            )}{" "}
            <button type="button" onClick={() => set(schedule.filter((_, at) => at !== index))} aria-label={`Remove event ${index + 1}`}>
              Remove
            </button>
          </p>
        );
      })}
      <button
        type="button"
        data-event="add"
        onClick={() => {
          const link = links[links.length > 1 ? 1 : 0] ?? "";
          const kind = suiting(link)[0];
          if (kind) set([...schedule, { at_s: ran >= 4 ? Math.round(ran / 2) : Number((ran / 2).toPrecision(1)), link, kind: kind.name, value: kind.value ?? null }]);
        }}
      >
        Add an event
      </button>
    </fieldset>
  );
}

function groups(knobs: Knob[]): [string, Knob[]][] {
  const found = new Map<string, Knob[]>();
  for (const knob of knobs) found.set(knob.group, [...(found.get(knob.group) ?? []), knob]);
  return [...found];
}

interface GroupProps {
  name: string;
  knobs: Knob[];
  settings: Settings;
  change: (key: string, value: Setting) => void;
}

/** What follows other settings is folded up until it has some of its own. */
function Group({ name, knobs, settings, change }: GroupProps) {
  const rows = knobs.map((knob) => (
    <KnobView key={knob.key} knob={knob} setting={settings[knob.key] ?? stands(knob, settings)} change={change} />
  ));
  const own = knobs.some((knob) => settings[knob.key] !== undefined);
  return (
    <fieldset id={`group-${name}`}>
      <legend>{name}</legend>
      {knobs.every((knob) => knob.follows) ? (
        <details open={own}>
          <summary>{own ? "has settings of its own" : "as transport"}</summary>
          {rows}
        </details>
      ) : (
        rows
      )}
    </fieldset>
  );
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

interface KnobProps<K extends Knob> {
  knob: K;
  /** null: the preset's own, which is no number. */
  setting: Setting | null;
  change: (key: string, value: Setting) => void;
}

function KnobView({ knob, setting, change }: KnobProps<Knob>) {
  return knob.kind === "choice" ? <Choice {...{ knob, setting, change }} /> : <Slider {...{ knob, setting, change }} />;
}

function Choice({ knob, setting, change }: KnobProps<ChoiceKnob>) {
  return (
    <label class="knob">
      <span>{knob.label}</span>
      <select value={String(setting)} data-knob={knob.key} onChange={(event) => change(knob.key, event.currentTarget.value)}>
        {knob.options.map(({ name }) => (
          <option value={name} key={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TypedProps {
  value: number | null;
  min: number;
  max: number;
  step?: number | "any";
  placeholder?: string;
  "aria-label"?: string;
  "data-knob"?: string;
  "data-event"?: string;
  take: (value: number) => void;
}

/** A number that is taken when it is complete; what a run shows meanwhile does not disturb who types. */
function Typed({ value, min, max, take, step = "any", ...others }: TypedProps) {
  const [draft, setDraft] = useState<string | null>(null);
  return (
    <input
      type="number"
      step={step}
      {...others}
      min={min}
      max={max}
      value={draft ?? value ?? ""}
      onInput={(event) => setDraft(event.currentTarget.value)}
      onChange={(event) => {
        const typed = event.currentTarget.value;
        setDraft(null);
        if (typed !== "" && Number(typed) >= min && Number(typed) <= max) take(Number(typed));
      }}
    />
  );
}

const STEPS = 400;

function Slider({ knob, setting, change }: KnobProps<NumberKnob>) {
  const { min, max, log, whole } = knob;
  const value = setting === null ? null : Number(setting);
  const place = value === null ? 0.5 : log ? Math.log(Math.max(value, min) / min) / Math.log(max / min) : (value - min) / (max - min);
  const at = (part: number) => rounded(log ? min * (max / min) ** part : min + (max - min) * part);
  const set = (given: number) => {
    const fit = whole ? Math.round(given) : given;
    if (Number.isFinite(fit) && fit >= min && fit <= max) change(knob.key, fit);
  };
  return (
    <label class="knob">
      <span>{knob.label}</span>
      <input
        type="range"
        min="0"
        max={STEPS}
        value={Math.round(place * STEPS)}
        aria-valuetext={value === null ? "as the lab has it" : `${value} ${knob.unit}`}
        onInput={(event) => set(at(Number(event.currentTarget.value) / STEPS))}
      />
      <Typed
        step={whole ? 1 : "any"}
        min={min}
        max={max}
        value={value}
        placeholder="own"
        data-knob={knob.key}
        aria-label={`${knob.group}: ${knob.label} in ${knob.unit}`}
        take={set}
      />
      <span class="unit">{knob.unit}</span>
    </label>
  );
}

/** Two digits and a half, as a person would give it. */
function rounded(value: number): number {
  if (value === 0) return 0;
  const digit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 1);
  return Number((Math.round(value / digit) * digit).toPrecision(6));
}

const target = document.getElementById("page");
complaining(target);

async function opened(): Promise<Playground> {
  const text = document.getElementById("data")?.textContent ?? "";
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json() as Promise<Playground>;
}

void opened().then((page) => {
  usePalette(page.palette);
  watchTheme();
  if (target) {
    target.replaceChildren();
    render(<App page={page} />, target);
  }
});
