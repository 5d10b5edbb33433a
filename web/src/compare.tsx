// Several runs on one axis of time, and their figures in one table.

import { useEffect, useMemo, useState } from "preact/hooks";
import { ceiling, usual } from "./ceiling";
import { Chart, Swatch, type Line, type Mark } from "./chart";
import { pathColour } from "./colour";
import { dataOf, type Page, type RunData, type Series } from "./data";
import { Expectations } from "./expectations";
import { goodput, milliseconds, percentile95, significant, took } from "./format";
import { interval, smoothed } from "./smooth";
import { end, hrefOf, theme, useValue, zoom } from "./store";

/** Runs that are drawn at first, and colours that are told apart. */
const FIRST = 6;
/** Connections of a run that have a row. */
const ROWS = 12;

export function AllRuns(props: { page: Page }) {
  const { page } = props;
  useValue(theme);
  const { order, places } = useMemo(() => drawnFirst(page), [page]);
  const [ticked, setTicked] = useState<ReadonlySet<number>>(new Set(order.slice(0, Math.min(FIRST, places > 1 ? places : FIRST))));
  // A run and a capture of it name their only connection differently.
  const single = page.runs.every((run) => run.summary.connections.length === 1);
  const names = [...new Set(page.runs.flatMap((run) => run.summary.connections.map((each) => each.name)))];
  const [name, setName] = useState(names[0] ?? "");
  const [data, setData] = useState<ReadonlyMap<number, RunData>>(new Map());
  useEffect(() => {
    let wanted = true;
    const chosen = order.filter((index) => ticked.has(index));
    end.set(Math.max(...chosen.map((index) => page.runs[index]?.end_s ?? 0), 1e-3));
    zoom.set(null);
    void Promise.all(chosen.map(async (index) => [index, await dataOf(page.runs[index] as never)] as const)).then((found) => {
      if (wanted) setData(new Map(found));
    });
    return () => {
      wanted = false;
    };
  }, [ticked]);

  const toggle = (index: number) => {
    const next = new Set(ticked);
    if (!next.delete(index)) next.add(index);
    setTicked(next);
  };
  return (
    <main data-ready={data.size > 0 || ticked.size === 0 ? "" : undefined}>
      <section aria-label="All runs">
        <h2>All runs</h2>
        <div class="wide" tabIndex={0} role="group" aria-label="Table">
          <table class="stacked" data-table="runs">
            <thead>
              <tr>
                <th scope="col">run</th>
                <th scope="col">connection</th>
                <th scope="col">transport</th>
                <th scope="col" class="number">Mbps</th>
                <th scope="col" class="number">time</th>
                <th scope="col" class="number">median delay</th>
                <th scope="col" class="number">95 %</th>
              </tr>
            </thead>
            <tbody>
              {page.runs.flatMap((run, index) =>
                run.summary.connections.slice(0, ROWS).map((each, number) => (
                  <tr key={`${index}.${number}`}>
                    <th scope="row">
                      {number === 0 && (
                        <>
                          <label>
                            <input
                              type="checkbox"
                              checked={ticked.has(index)}
                              aria-label={`draw ${run.short}`}
                              onChange={() => toggle(index)}
                            />{" "}
                            <Swatch colour={() => pathColour(order.indexOf(index))} dash={order.indexOf(index) >= page.palette.length} />
                          </label>{" "}
                          <a href={hrefOf({ view: "run", run: index })}>{run.short}</a>
                        </>
                      )}
                    </th>
                    <td>{each.name}</td>
                    <td>{each.transport}</td>
                    <td class="number" data-what="Mbps">{goodput(each)}</td>
                    <td class="number" data-what="time">{took(each.completion_s)}</td>
                    <td class="number" data-what="median delay">{milliseconds(each.requests.median_s)}</td>
                    <td class="number" data-what="95 %">{percentile95(each.requests)}</td>
                  </tr>
                )),
              )}
            </tbody>
          </table>
        </div>
        {page.runs.some((run) => run.summary.connections.length > ROWS) && <p class="quiet">Of each run the first {ROWS} connections.</p>}
        {!single && names.length > 1 && (
          <label>
            connection{" "}
            <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
              {names.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
        )}
        <Overlay page={page} order={order} data={data} name={single ? null : name} of="rate" title="Goodput" unit="Mbps" />
        <Overlay page={page} order={order} data={data} name={single ? null : name} of="delivered" title="Delivered" unit="MB" />
      </section>
      {page.labs.map((lab) => (
        <Expectations key={lab.name} lab={lab} />
      ))}
    </main>
  );
}

/** The order in which runs are drawn and coloured: of a sweep one of each place, before its other seeds. */
function drawnFirst(page: Page): { order: number[]; places: number } {
  const seen = new Set<string>();
  const first: number[] = [];
  const others: number[] = [];
  page.runs.forEach((run, index) => {
    const sweep = run.name.split(" (")[0];
    const place = JSON.stringify([sweep, ...Object.entries(run.values).filter(([axis]) => axis !== "seed")]);
    const isPoint = Object.keys(run.values).length > 0;
    (isPoint && seen.has(place) ? others : first).push(index);
    seen.add(place);
  });
  return { order: [...first, ...others], places: first.length };
}

function Overlay(props: {
  page: Page;
  order: readonly number[];
  data: ReadonlyMap<number, RunData>;
  /** Of the connection; null: each run has one. */
  name: string | null;
  of: "rate" | "delivered";
  title: string;
  unit: string;
}) {
  const { page, order, data, name, of } = props;
  const { times, lines, room, width } = useMemo(() => {
    let width = 0;
    const own: { index: number; series: Series }[] = [];
    for (const [index, each] of data) {
      const connections = page.runs[index]?.summary.connections ?? [];
      const number = connections.findIndex((connection) => name === null || connection.name === name);
      const series = each.connections.get(number)?.[of];
      if (series) own.push({ index, series });
      if (series && connections[number]) width = Math.max(width, interval(connections[number], series));
    }
    if (of === "rate") for (const each of own) each.series = smoothed(each.series, width);
    const all = [...new Set(own.flatMap(({ series }) => series.t))].sort((a, b) => a - b);
    const places = new Map(all.map((time, place) => [time, place]));
    const made = own.map(({ index, series }): Line => {
      const values: (number | null)[] = new Array<number | null>(all.length).fill(null);
      series.t.forEach((time, row) => (values[places.get(time) as number] = series.v[0]?.[row] ?? null));
      return {
        label: page.runs[index]?.short ?? "",
        values,
        colour: () => pathColour(order.indexOf(index)),
        ...(order.indexOf(index) >= page.palette.length ? { dash: [6, 3] } : {}),
      };
    });
    return { times: all, lines: made, width, room: Math.max(0, ...own.map(({ series }) => usual(series))) };
  }, [data, name]);
  const changes = useMemo(() => common(page, [...data.keys()]), [data]);
  const cap = useMemo(() => (of === "rate" ? ceiling(times, lines, room, props.unit) : null), [lines]);
  if (lines.length === 0) return null;
  return (
    <Chart
      name={`all-${of}`}
      title={props.title}
      unit={props.unit}
      times={times}
      lines={lines}
      marks={changes}
      named={of === "rate"}
      note={[of === "rate" ? `means over ${significant(width, 3)} s` : "", cap?.note].filter((part) => part).join("; ")}
      {...(cap ? { range: cap.range, over: cap.draw } : {})}
    />
  );
}

/** What the plans change: once where several runs have it, with the run's name where not all do. */
function common(page: Page, runs: readonly number[]): Mark[] {
  const found = new Map<string, { mark: Mark; runs: string[] }>();
  for (const index of runs) {
    const run = page.runs[index];
    for (const mark of run?.marks ?? []) {
      const key = `${mark.t} ${mark.text}`;
      const known = found.get(key) ?? { mark, runs: [] };
      known.runs.push(run?.short ?? "");
      found.set(key, known);
    }
  }
  return [...found.values()]
    .map(({ mark, runs: own }) => (own.length === runs.length ? mark : { t: mark.t, text: `${own.join(", ")}: ${mark.text}` }))
    .sort((a, b) => a.t - b.t);
}
