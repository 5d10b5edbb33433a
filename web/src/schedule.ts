// What a person has happen to links while a run goes on. `polypath.playground.events` makes the kinds.

/** An action of the plan on its first link; with a unit a number goes to `at`, `factor` times the value. */
export interface EventKind {
  name: string;
  /** As an event of a scenario has it. */
  key: string;
  text: string;
  /** The links that it suits. */
  links: string[];
  action: Record<string, unknown>;
  unit?: string;
  value?: number;
  most?: number;
  at?: string[];
  factor?: number;
  whole?: boolean;
}

export interface EventKinds {
  /** The number of the first event that is added, as `--set` counts. */
  first: number;
  kinds: EventKind[];
}

export interface Scheduled {
  at_s: number;
  link: string;
  kind: string;
  value: number | null;
}

interface Planned {
  duration_ns: number;
  links: { name: string }[];
  events: { at_ns: number; action: Record<string, unknown> }[];
}

function kindOf({ kinds }: EventKinds, event: Scheduled): EventKind | undefined {
  return kinds.find((kind) => kind.name === event.kind);
}

function action(kind: EventKind, event: Scheduled, link: number): Record<string, unknown> {
  const found = structuredClone(kind.action);
  found["link"] = link;
  if (kind.at && kind.factor !== undefined && event.value !== null) {
    let inner = found;
    for (const step of kind.at.slice(0, -1)) inner = inner[step] as Record<string, unknown>;
    const value = event.value * kind.factor;
    inner[kind.at[kind.at.length - 1] as string] = kind.whole ? Math.round(value) : Number(value.toPrecision(12));
  }
  return found;
}

/** The plan with the events, which come after its own at the same time. */
export function planWithEvents<P>(plan: P, kinds: EventKinds | null, schedule: Scheduled[]): P {
  if (!kinds || schedule.length === 0) return plan;
  const of = plan as unknown as Planned;
  const added = schedule.flatMap((event) => {
    const kind = kindOf(kinds, event);
    const link = of.links.findIndex(({ name }) => name === event.link);
    return kind && link >= 0 ? [{ at_ns: Math.round(event.at_s * 1e9), action: action(kind, event, link) }] : [];
  });
  const events = [...of.events, ...added].sort((a, b) => a.at_ns - b.at_ns);
  return { ...plan, events };
}

/** What it changes, as an event of a scenario says it. */
function change(kind: EventKind, event: Scheduled): string {
  return `${kind.key}=${kind.unit ? `"${event.value} ${kind.unit}"` : kind.text}`;
}

/** As `--set` takes them. */
export function settingsOfEvents(kinds: EventKinds | null, schedule: Scheduled[]): string[] {
  if (!kinds) return [];
  return schedule.flatMap((event, index) => {
    const kind = kindOf(kinds, event);
    return kind ? [`event.${kinds.first + index}={at="${event.at_s} s", link="${event.link}", ${change(kind, event)}}`] : [];
  });
}

/** In words, for a chart's mark. */
export function inWords(kinds: EventKinds | null, event: Scheduled): string {
  const kind = kinds && kindOf(kinds, event);
  return `${event.link}: ${kind?.unit ? `${kind.name} ${event.value} ${kind.unit}` : event.kind}`;
}

/** For an address. */
export function written(event: Scheduled): string {
  return [event.at_s, event.link, event.kind, ...(event.value === null ? [] : [event.value])].join("~");
}

/** The events that an address names, as far as there are such links and kinds. */
export function eventsOf(parameters: URLSearchParams, kinds: EventKinds | null, plan: unknown): Scheduled[] {
  if (!kinds) return [];
  const { duration_ns } = plan as Planned;
  return parameters.getAll("event").flatMap((text) => {
    const [at = "", link = "", name = "", given] = text.split("~");
    const kind = kinds.kinds.find((each) => each.name === name);
    const [at_s, value] = [Number(at), kind?.unit ? Number(given) : null];
    const fits = at.trim() !== "" && at_s >= 0 && at_s * 1e9 <= duration_ns && (value === null || (value >= 0 && value <= (kind?.most ?? 0)));
    return kind && fits && kind.links.includes(link) ? [{ at_s, link, kind: name, value }] : [];
  });
}

/** When links go down and come up again. */
export function changesOf(plan: unknown): { t: number; link: number; direction: string; up: boolean }[] {
  return (plan as Planned).events.flatMap(({ at_ns, action: { kind, link, direction, up } }) =>
    kind === "link" && typeof up === "boolean" ? [{ t: at_ns / 1e9, link: Number(link), direction: String(direction), up }] : [],
  );
}
