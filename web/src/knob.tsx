// A knob as a person turns it: a choice, or a slider beside a number.

import { useState } from "preact/hooks";
import { stands, type ChoiceKnob, type Knob, type NumberKnob, type Setting, type Settings } from "./knobs";

export function groups(knobs: Knob[]): [string, Knob[]][] {
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
export function Group({ name, knobs, settings, change }: GroupProps) {
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
export function Typed({ value, min, max, take, step = "any", ...others }: TypedProps) {
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
