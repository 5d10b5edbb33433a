// The page: its head, the place that one is at, and the keys.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { AllRuns } from "./compare";
import type { Page } from "./data";
import { RunView } from "./run";
import { playing, Scrubber } from "./scrubber";
import { end, goTo, hrefOf, moment, shown, theme, toggleTheme, useValue, whereOf, zoom, zoomBy, zoomTo, type Where } from "./store";
import { SweepView } from "./sweep";

const KEYS = [
  ["space", "play and pause"],
  ["← →", "a step in time; with shift ten"],
  ["+ −", "zoom in and out"],
  ["< >", "move what is shown"],
  ["0", "the whole run"],
  ["[ ]", "the run before and after"],
  ["t", "light or dark"],
] as const;

function firstPlace(page: Page): Where {
  if (page.sweeps.length > 0) return { view: "sweep", sweep: 0 };
  return page.runs.length > 1 ? { view: "all" } : { view: "run", run: 0 };
}

/** What a page with the simulator has for its runs. */
export interface Live {
  has: (run: number) => boolean;
  view: (run: number) => ComponentChildren;
}

const NONE: Live = { has: () => false, view: () => null };

export function App(props: { page: Page; live?: Live }) {
  const { page, live = NONE } = props;
  const place = () => whereOf(location.hash, page.runs.length, page.sweeps.length, live.has) ?? firstPlace(page);
  const [where, setWhere] = useState<Where>(place);
  const current = useValue(theme);
  useEffect(() => {
    const moved = () => {
      setWhere(place());
      playing.set(false);
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    const press = (event: KeyboardEvent) => key(event, page, where);
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [where]);
  const lab = page.labs.length === 1 ? page.labs[0] : undefined;
  const run = where.view === "run" ? page.runs[where.run] : undefined;
  const sweep = where.view === "sweep" ? page.sweeps[where.sweep] : undefined;
  return (
    <>
      <header>
        <div class="head">
          <h1>{page.title}</h1>
          <button type="button" onClick={toggleTheme} aria-label={`Change to ${current === "dark" ? "light" : "dark"}`}>
            {current === "dark" ? "light" : "dark"}
          </button>
        </div>
        {lab && <p class="question">{lab.question}</p>}
        <Places page={page} where={where} />
        {where.view === "run" && live.has(where.run) && (
          <p>
            <a href={hrefOf({ view: "live", run: where.run })}>Change this run</a>: its links, transports and events, simulated in this page.
          </p>
        )}
      </header>
      {where.view === "live" && live.view(where.run)}
      {run && <RunView key={where.view === "run" ? where.run : -1} labs={page.labs} run={run} />}
      {where.view === "all" && <AllRuns page={page} />}
      {sweep && <SweepView key={sweep.name} page={page} sweep={sweep} />}
      <footer>
        <details>
          <summary>Keys</summary>
          <dl class="keys">
            {KEYS.map(([name, what]) => (
              <>
                <dt>
                  <kbd>{name}</kbd>
                </dt>
                <dd>{what}</dd>
              </>
            ))}
          </dl>
        </details>
        <p class="quiet">Written by polypath {page.version}. This page loads nothing from a network.</p>
      </footer>
      {where.view !== "sweep" && <Scrubber key={hrefOf(where)} />}
    </>
  );
}

function Places(props: { page: Page; where: Where }) {
  const { page, where } = props;
  if (page.runs.length + page.sweeps.length < 2) return null;
  const here = hrefOf(where.view === "live" ? { view: "run", run: where.run } : where);
  const link = (to: Where, name: string) => (
    <a href={hrefOf(to)} {...(hrefOf(to) === here ? { "aria-current": "page" as const } : {})}>
      {name}
    </a>
  );
  return (
    <nav aria-label="Runs">
      {page.sweeps.map((sweep, index) => link({ view: "sweep", sweep: index }, sweep.name))}
      {page.runs.length > 1 && link({ view: "all" }, "all runs")}
      {page.runs.length <= 12 && page.sweeps.length === 0 ? (
        page.runs.map((run, index) => link({ view: "run", run: index }, run.short))
      ) : (
        <label>
          run{" "}
          <select
            value={where.view === "run" || where.view === "live" ? here : ""}
            onChange={(event) => {
              if (event.currentTarget.value) location.hash = event.currentTarget.value;
            }}
          >
            <option value="">…</option>
            {page.runs.map((run, index) => (
              <option value={hrefOf({ view: "run", run: index })} key={index}>
                {run.short}
              </option>
            ))}
          </select>
        </label>
      )}
    </nav>
  );
}

/** Steps of the arrow keys in the time that is shown. */
const STEPS = 100;
const ZOOM = 0.6;

function key(event: KeyboardEvent, page: Page, where: Where): void {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || target.matches("select")) return;
  if (event.key === " " && target.closest("button, a, summary, input[type=checkbox]")) return;
  const scrolls = target.matches("[tabindex]") && target.scrollWidth > target.clientWidth;
  if (/^(Arrow|Page|Home|End)/.test(event.key) && (scrolls || target.matches("input[type=range]"))) return;
  const { min, max } = shown();
  const step = ((max - min) / STEPS) * (event.shiftKey ? 10 : 1);
  const actions: Record<string, () => void> = {
    " ": () => playing.set(!playing.get()),
    ArrowLeft: () => goTo(moment.get() - step),
    ArrowRight: () => goTo(moment.get() + step),
    Home: () => goTo(0),
    End: () => goTo(end.get()),
    "+": () => zoomBy(ZOOM),
    "=": () => zoomBy(ZOOM),
    "-": () => zoomBy(1 / ZOOM),
    "<": () => zoomTo(min - (max - min) / 4, max - (max - min) / 4),
    ">": () => zoomTo(min + (max - min) / 4, max + (max - min) / 4),
    "0": () => zoom.set(null),
    t: toggleTheme,
    "[": () => sibling(page, where, -1),
    "]": () => sibling(page, where, 1),
  };
  const action = actions[event.key];
  if (!action || (where.view === "sweep" && event.key !== "t")) return;
  event.preventDefault();
  action();
}

function sibling(page: Page, where: Where, step: number): void {
  const next = where.view === "run" ? where.run + step : 0;
  if (next >= 0 && next < page.runs.length) location.hash = hrefOf({ view: "run", run: next });
}
