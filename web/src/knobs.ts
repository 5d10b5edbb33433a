// What can be changed about a preset, and the plan that comes of it. `polypath.playground.knobs` makes the knobs.

/** Where a value lies in a plan: names of keys and places in lists. */
export type At = (string | number)[];

/** A part of the plan that is replaced; without a value it is removed. */
export interface Replaced {
  at: At;
  value?: unknown;
}

/** A number in the plan: `factor` times the knob's value by `divisor`, and `offset`; whole where the plan has whole numbers. */
export interface Placed {
  at: At;
  factor: number;
  divisor: number;
  offset: number;
  whole: boolean;
}

interface Common {
  /** As `--set` has it. */
  key: string;
  label: string;
  /** What it belongs to, which is its heading. */
  group: string;
  /** The knob whose setting it has while it has none of its own. */
  follows?: string;
}

export interface NumberKnob extends Common {
  kind: "number";
  unit: string;
  min: number;
  max: number;
  /** Whether the slider goes by factors instead of differences. */
  log: boolean;
  whole: boolean;
  /** null: the preset has no such number there. */
  value: number | null;
  /** What else is replaced at any value but the plan's own, and at 0. */
  replaced: Replaced[];
  none: Replaced[] | null;
  places: Placed[];
}

export interface ChoiceKnob extends Common {
  kind: "choice";
  value: string;
  options: { name: string; replaced: Replaced[] }[];
}

export type Knob = NumberKnob | ChoiceKnob;
export type Setting = number | string;
/** The knobs that are not where the preset has them. */
export type Settings = Record<string, Setting>;

type Tree = Record<string | number, unknown>;

function put(plan: unknown, at: At, value: unknown): void {
  let inner = plan as Tree;
  for (const step of at.slice(0, -1)) inner = (inner[step] ??= {}) as Tree;
  const last = at[at.length - 1] as string | number;
  if (value === undefined) delete inner[last];
  else inner[last] = structuredClone(value);
}

/** The plan with these settings. */
export function planWith(plan: unknown, knobs: Knob[], settings: Settings): unknown {
  const found = structuredClone(plan);
  const replace = (all: Replaced[]) => all.forEach(({ at, value }) => put(found, at, value));
  for (const knob of knobs) {
    const setting = settings[knob.key];
    if (setting === undefined || knob.kind !== "choice") continue;
    replace(knob.options.find((option) => option.name === setting)?.replaced ?? []);
  }
  for (const knob of knobs) {
    const setting = settings[knob.key];
    if (typeof setting !== "number" || knob.kind !== "number") continue;
    if (setting === 0 && knob.none) {
      replace(knob.none);
      continue;
    }
    replace(knob.replaced);
    for (const { at, factor, divisor, offset, whole } of knob.places) {
      const value = (setting * factor) / divisor + offset;
      // a scenario's numbers are decimal: 7.2 % is 0.072
      put(found, at, whole ? Math.round(value) : Number(value.toPrecision(12)));
    }
  }
  return found;
}

/** Where a knob stands without a setting of its own; null: at no number. */
export function stands(knob: Knob, settings: Settings): Setting | null {
  return (knob.follows === undefined ? undefined : settings[knob.follows]) ?? knob.value;
}

/** As `--set` takes it. */
export function text(knob: Knob, setting: Setting): string {
  return knob.kind === "number" && knob.unit ? `${setting} ${knob.unit}` : `${setting}`;
}

/** The settings that an address names, as far as there are such knobs. */
export function settingsOf(parameters: URLSearchParams, knobs: Knob[]): Settings {
  const found: Settings = {};
  for (const knob of knobs) {
    const given = parameters.get(knob.key);
    if (given === null) continue;
    if (knob.kind === "number") {
      const value = Number(given);
      const fits = value >= knob.min && value <= knob.max && (!knob.whole || Number.isInteger(value));
      if (given.trim() !== "" && fits) found[knob.key] = value;
    } else if (knob.options.some((option) => option.name === given)) {
      found[knob.key] = given;
    }
  }
  return found;
}
