// What all parts of the page share: the moment, the stretch of time that is shown, the theme, and where one is.

import { useEffect, useState } from "preact/hooks";

export class Value<T> {
  private readonly listeners = new Set<(value: T) => void>();

  constructor(private current: T) {}

  get(): T {
    return this.current;
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const listener of [...this.listeners]) listener(value);
  }

  /** The returned function ends it. */
  subscribe(listener: (value: T) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export function useValue<T>(value: Value<T>): T {
  const [seen, setSeen] = useState(value.get());
  useEffect(() => {
    setSeen(value.get());
    return value.subscribe(setSeen);
  }, [value]);
  return seen;
}

export interface Span {
  min: number;
  max: number;
}

/** Seconds since the start of the run. */
export const moment = new Value(0);
/** The end of the axis of time, in seconds. */
export const end = new Value(1);
/** What is shown of the time; null: all of it. */
export const zoom = new Value<Span | null>(null);

const query = typeof matchMedia === "undefined" ? null : matchMedia("(max-width: 640px)");
/** Whether the window is as narrow as a phone's, as in style.css. */
export const narrow = new Value(query?.matches ?? false);
query?.addEventListener("change", (event) => narrow.set(event.matches));

/** The least stretch of time that can be shown, in seconds. */
const LEAST = 1e-6;

export function shown(): Span {
  return zoom.get() ?? { min: 0, max: end.get() };
}

export function zoomTo(min: number, max: number): void {
  const whole = end.get();
  const length = Math.min(Math.max(max - min, LEAST), whole);
  const from = Math.min(Math.max(min, 0), whole - length);
  zoom.set(length >= whole ? null : { min: from, max: from + length });
}

/** Shows `factor` of the time that is shown, around the moment if that is in it. */
export function zoomBy(factor: number): void {
  const { min, max } = shown();
  const at = moment.get();
  const centre = at >= min && at <= max ? at : (min + max) / 2;
  zoomTo(centre - (centre - min) * factor, centre + (max - centre) * factor);
}

export function goTo(at: number): void {
  moment.set(Math.min(Math.max(at, 0), end.get()));
}

/** Goes to a moment and shows what is around it. */
export function look(at: number, around: number): void {
  goTo(at);
  zoomTo(at - around, at + around);
}

export type Theme = "light" | "dark";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
/** What the reader chose; null: as the system has it. */
const chosen = new Value<Theme | null>(null);
export const theme = new Value<Theme>(dark.matches ? "dark" : "light");
let printing = false;

function settle(): void {
  const next = printing ? "light" : (chosen.get() ?? (dark.matches ? "dark" : "light"));
  document.documentElement.dataset["theme"] = next;
  theme.set(next);
}

export function toggleTheme(): void {
  chosen.set(theme.get() === "dark" ? "light" : "dark");
}

export function watchTheme(): void {
  chosen.subscribe(settle);
  dark.addEventListener("change", settle);
  window.addEventListener("beforeprint", () => {
    printing = true;
    settle();
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    settle();
  });
  settle();
}

/** A place of the page: a run, the same where it can be changed, all runs, or a sweep. */
export type Where = { view: "run" | "live"; run: number } | { view: "all" } | { view: "sweep"; sweep: number };

export function hrefOf(where: Where): string {
  if (where.view === "all") return "#all";
  return where.view === "sweep" ? `#sweep-${where.sweep + 1}` : `#${where.view}-${where.run + 1}`;
}

/** The place that the address names, before any `&`; null where it names none of the page's. */
export function whereOf(hash: string, runs: number, sweeps: number, live: (run: number) => boolean): Where | null {
  if (hash === "#all" && runs > 1) return { view: "all" };
  const [, what, number] = /^#(run|live|sweep)-(\d{1,6})(?:&|$)/.exec(hash) ?? [];
  const index = Number(number) - 1;
  if (what === "sweep") return index >= 0 && index < sweeps ? { view: "sweep", sweep: index } : null;
  if (!what || index < 0 || index >= runs) return null;
  return { view: what === "live" && live(index) ? "live" : "run", run: index };
}

/** What the address says besides the place. */
export function parametersOf(hash: string): URLSearchParams {
  return new URLSearchParams(/&(.*)/.exec(hash)?.[1] ?? "");
}
