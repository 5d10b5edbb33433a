// A sweep as a matrix that can be sorted; each cell leads to its runs.

import { useState } from "preact/hooks";
import type { Estimate, Page, Point, Sweep } from "./data";
import { estimated, rounded } from "./format";
import { hrefOf } from "./store";

interface Cell {
  estimate: Estimate | undefined;
  points: Point[];
}

/** What is shown first: of a comparison what has a difference, otherwise what has a value at all. */
function telling(sweep: Sweep): { connection: string; measure: string } | undefined {
  const known = sweep.statistics.filter((each) => (each.mean ?? each.median ?? null) !== null);
  return (
    sweep.compared.find((each) => each.difference !== "") ??
    sweep.compared[0] ??
    sweep.measures.flatMap(({ name }) => known.filter((each) => each.measure === name))[0]
  );
}

export function SweepView(props: { page: Page; sweep: Sweep }) {
  const { page, sweep } = props;
  const connections = [...new Set(sweep.statistics.map((each) => each.connection))];
  const [first] = useState(() => telling(sweep));
  const [connection, setConnection] = useState(first?.connection ?? connections[0] ?? "");
  const [measure, setMeasure] = useState(first?.measure ?? sweep.measures[0]?.name ?? "");
  const [sorted, setSorted] = useState<{ column: number; down: boolean } | null>(null);
  const across = sweep.axes.length > 1 ? sweep.axes[sweep.axes.length - 1] : undefined;
  const down = across ? sweep.axes.slice(0, -1) : sweep.axes;
  const chosen = sweep.measures.find((each) => each.name === measure);
  const printed = chosen?.printed ?? 1;

  const rows = [...new Map(sweep.points.map((point) => [JSON.stringify(point.place.slice(0, down.length)), point.place.slice(0, down.length)])).values()].map(
    (labels, order) => ({
      labels,
      order,
      cells: (across?.labels ?? [""]).map((label): Cell => {
        const place = JSON.stringify(across ? [...labels, label] : labels);
        return {
          estimate: sweep.statistics.find(
            (each) => each.measure === measure && each.connection === connection && JSON.stringify(each.place) === place,
          ),
          points: sweep.points.filter((point) => JSON.stringify(point.place) === place),
        };
      }),
    }),
  );
  const value = (cell: Cell | undefined) => cell?.estimate?.mean ?? cell?.estimate?.median ?? null;
  if (sorted) {
    const key = (row: (typeof rows)[number]) =>
      sorted.column < down.length
        ? (down[sorted.column]?.labels.indexOf(row.labels[sorted.column] ?? "") ?? 0)
        : (value(row.cells[sorted.column - down.length]) ?? Infinity);
    rows.sort((a, b) => (sorted.down ? key(b) - key(a) : key(a) - key(b)) || a.order - b.order);
  }
  const signs = meanings(rows.flatMap((row) => row.cells.map((cell) => cell.estimate)));
  const known = rows.flatMap((row) => row.cells.map(value)).filter((each): each is number => each !== null);
  const most = Math.max(...known);
  const headings = [...down.map((axis) => axis.name), ...(across ? across.labels : [chosen?.heading ?? "runs"])];
  return (
    <main data-ready="">
      <section aria-label="Sweep">
        <h2>{sweep.name}</h2>
        <p>
          {sweep.measures.length > 0 && (
            <label>
              figure{" "}
              <select value={measure} onChange={(event) => setMeasure(event.currentTarget.value)}>
                {sweep.measures.map((each) => (
                  <option value={each.name} key={each.name}>
                    {each.title}
                  </option>
                ))}
              </select>
            </label>
          )}{" "}
          {connections.length > 1 && (
            <label>
              connection{" "}
              <select value={connection} onChange={(event) => setConnection(event.currentTarget.value)}>
                {connections.map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            </label>
          )}
        </p>
        <div class="wide" tabIndex={0} role="group" aria-label="Table">
          <table class="matrix" data-table="matrix">
            <caption>
              {chosen ? `${chosen.heading}, mean over seeds with half of its 95 % interval` : "runs"}
              {across ? `; across: ${across.name}` : ""}
            </caption>
            <thead>
              <tr>
                {headings.map((heading, column) => (
                  <th
                    scope="col"
                    key={column}
                    aria-sort={sorted?.column === column ? (sorted.down ? "descending" : "ascending") : "none"}
                  >
                    <button
                      type="button"
                      class="plain"
                      onClick={() => setSorted({ column, down: sorted?.column === column && !sorted.down })}
                    >
                      {heading}
                      {sorted?.column === column ? (sorted.down ? " ↓" : " ↑") : ""}
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.order}>
                  {row.labels.map((label, index) => (
                    <th scope="row" key={index}>
                      {label}
                    </th>
                  ))}
                  {row.cells.map((cell, index) => (
                    <MatrixCell key={index} cell={cell} printed={printed} part={share(value(cell), most)} page={page} />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {signs.map((each) => (
          <p class="quiet" key={each}>
            {each}
          </p>
        ))}
        <Compared sweep={sweep} connection={connection} measure={measure} />
      </section>
    </main>
  );
}

/** What `compare --by` said: differences within seeds. */
function Compared(props: { sweep: Sweep; connection: string; measure: string }) {
  const rows = props.sweep.compared.filter((each) => each.connection === props.connection && each.measure === props.measure);
  if (rows.length === 0) return null;
  const axes = Object.keys(rows[0]?.place ?? {});
  return (
    <>
      <h3 class="apart">Differences within seeds, to {rows[0]?.base}</h3>
      <div class="wide" tabIndex={0} role="group" aria-label="Differences">
        <table class="compared" data-table="compared">
          <thead>
            <tr>
              {[...axes, "figure", "difference (95 % interval)", "p", "what is shown"].map((heading, column) => (
                <th scope="col" key={column}>
                  {heading}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, number) => (
              <tr key={number}>
                {axes.map((axis) => (
                  <th scope="row" key={axis}>
                    {row.place[axis]}
                  </th>
                ))}
                <td>{row.figure}</td>
                <td>{row.difference}</td>
                <td>{row.p}</td>
                <td>{row.verdict}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="quiet">p is corrected for the number of comparisons of the table (Holm).</p>
    </>
  );
}

/** The length of a bar: they begin at 0, so that lengths compare as the figures do. */
function share(value: number | null, most: number): number {
  return value === null || most <= 0 ? 0 : Math.max(0, value) / most;
}

function MatrixCell(props: { cell: Cell; printed: number; part: number; page: Page }) {
  const { cell, printed, part } = props;
  const first = cell.points.find((point) => point.run !== null);
  const text = words(cell.estimate, printed) || cell.points[0]?.state || "";
  const several = cell.points.length > 1;
  const failed = cell.points.filter((point) => point.state === "failed");
  return (
    <td class="cell">
      <svg class="shade" width="100%" height="4" aria-hidden="true">
        <rect width={`${100 * part}%`} height="4" />
      </svg>
      {first && first.run !== null ? <a href={hrefOf({ view: "run", run: first.run })}>{text}</a> : text}
      {several && (
        <span class="seeds">
          {cell.points.map((point) => (
            <span key={point.folder}>
              {" "}
              {point.run === null ? point.seed : <a href={hrefOf({ view: "run", run: point.run })} aria-label={`seed ${point.seed}`}>{point.seed}</a>}
            </span>
          ))}
        </span>
      )}
      {failed.map((point) => (
        <span class="warning" key={point.folder}>
          {" "}
          failed: {point.failure}
        </span>
      ))}
    </td>
  );
}

/** What the signs in the matrix mean, as the terminal says it. */
function meanings(estimates: (Estimate | undefined)[]): string[] {
  const uses = (method: string) => estimates.some((each) => each?.method === method && !each.unfinished);
  return [
    ...(uses("deterministic") ? ["= deterministic: the runs of all seeds agree"] : []),
    ...(uses("constant") ? ["(all n): one value in all n runs, which differ otherwise; how rare another is they do not say"] : []),
    ...(estimates.some((each) => each?.unfinished)
      ? [
          "done: runs that finished, had their requests answered and their video shown; a figure before it is the median, with the others counted as the worst",
        ]
      : []),
  ];
}

function words(estimate: Estimate | undefined, printed: number): string {
  if (!estimate) return "";
  if (estimate.unfinished) {
    const of = `${estimate.n - estimate.unfinished} of ${estimate.n} done`;
    return estimate.median === null ? of : `${rounded(estimate.median / printed)}, ${of}`;
  }
  if (estimate.mean === null) return "";
  const mean = estimate.mean / printed;
  if (estimate.method === "deterministic") return `${rounded(mean)} =`;
  if (estimate.method === "constant") return `${rounded(mean)} (all ${estimate.n})`;
  if (estimate.low === null || estimate.high === null) return rounded(mean);
  return estimated(mean, estimate.low / printed, estimate.high / printed);
}
