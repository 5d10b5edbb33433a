// The playground: a lab that runs in the page. What is changed runs at once, and everything below follows.

import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { usePalette } from "./colour";
import { complaining } from "./complaint";
import type { Change, Channel, Network, Run } from "./data";
import { mbps, took } from "./format";
import { planWith, settingsOf, stands, text, type ChoiceKnob, type Knob, type NumberKnob, type Setting, type Settings } from "./knobs";
import { Lab, type Shown } from "./lab";
import { RunView } from "./run";
import { Scrubber } from "./scrubber";
import { theme, toggleTheme, useValue, watchTheme } from "./store";

interface Preset {
  /** As `polypath run` takes it. */
  command: string;
  name: string;
  title: string;
  question: string;
  /** What the reader may try: a text, and the settings that do it. */
  tries: { text: string; settings: Settings }[];
  plan: { duration_ns: number; links: { name: string; forward: PlanChannel; backward: PlanChannel }[]; nodes: { name: string }[] };
  network: Network | null;
  changes: Change[];
  marks: { t: number; text: string }[];
  knobs: Knob[];
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
  settings: Settings;
}

/** The preset and the settings that the address names. */
function addressed(presets: Preset[]): { preset: number; settings: Settings } {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const named = presets.findIndex((each) => each.name === parameters.get("lab"));
  const preset = Math.max(0, named);
  return { preset, settings: settingsOf(parameters, presets[preset]?.knobs ?? []) };
}

function hashOf(preset: Preset, settings: Settings): string {
  const parameters = new URLSearchParams({ lab: preset.name });
  for (const { key } of preset.knobs) if (settings[key] !== undefined) parameters.set(key, `${settings[key]}`);
  return `#${parameters.toString()}`;
}

/** What a person types for the same run. */
function command(preset: Preset, settings: Settings): string {
  const given = preset.knobs.flatMap((knob) => {
    const setting = settings[knob.key];
    return setting === undefined ? [] : [` --set '${knob.key}=${text(knob, setting)}'`];
  });
  return `polypath run ${preset.command}${given.join("")}`;
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

function runOf(preset: Preset, { shown, settings }: Ran): Run {
  const plan = planWith(preset.plan, preset.knobs, settings) as Preset["plan"];
  const seed = settings["seed"] ?? preset.knobs.find((knob) => knob.key === "seed")?.value ?? 0;
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
    changes: preset.changes,
    marks: preset.marks,
  };
}

function App({ page }: { page: Playground }) {
  const { presets } = page;
  const lab = useMemo(() => new Lab(), []);
  const [chosen, choose] = useState(() => addressed(presets));
  const [ran, setRan] = useState<Ran | null>(null);
  const [before, setBefore] = useState<Ran | null>(null);
  const [progress, setProgress] = useState<string>("");
  const [failed, setFailed] = useState<string | null>(null);
  const of = useRef<number>(-1);
  const current = useValue(theme);
  const preset = presets[chosen.preset] as Preset;
  const { settings } = chosen;

  useEffect(() => {
    const moved = () => choose(addressed(presets));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);

  useEffect(() => {
    const hash = hashOf(preset, settings);
    if (location.hash !== hash) history.replaceState(null, "", hash);
    const plan = planWith(preset.plan, preset.knobs, settings) as Preset["plan"];
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
        return { shown: heard.shown, took_s: heard.took_s, settings };
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
          <select value={String(chosen.preset)} onChange={(event) => choose({ preset: Number(event.currentTarget.value), settings: {} })} data-knob="lab">
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
          <button type="button" disabled={Object.keys(settings).length === 0} onClick={() => choose({ ...chosen, settings: {} })}>
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
          <code data-command="">{command(preset, settings)}</code>
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

function Compared({ now, then }: { now: Shown; then: Shown }) {
  return (
    <table class="compared">
      <caption>beside the run before</caption>
      <thead>
        <tr>
          <th scope="col">connection</th>
          <th scope="col" class="number">Mbps</th>
          <th scope="col" class="number">before</th>
          <th scope="col" class="number">time</th>
          <th scope="col" class="number">before</th>
        </tr>
      </thead>
      <tbody>
        {now.summary.connections.slice(0, 8).map((each, index) => {
          const old = then.summary.connections[index];
          return (
            <tr key={index}>
              <th scope="row">{each.name}</th>
              <td class="number">{mbps(each.goodput_mbps)}</td>
              <td class="number">{mbps(old?.goodput_mbps ?? null)}</td>
              <td class="number">{took(each.completion_s)}</td>
              <td class="number">{took(old?.completion_s ?? null)}</td>
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
      <input
        type="number"
        step={whole ? 1 : "any"}
        min={min}
        max={max}
        value={value ?? ""}
        placeholder="own"
        data-knob={knob.key}
        aria-label={`${knob.group}: ${knob.label} in ${knob.unit}`}
        onChange={(event) => event.currentTarget.value && set(Number(event.currentTarget.value))}
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
