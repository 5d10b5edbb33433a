// Requests: their delays over time, and a bar for each: waiting, then the answer coming, by path.

import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import { Chart, Swatch, type Mark } from "./chart";
import { ink, laneColour } from "./colour";
import type { Connection, Requests } from "./data";
import { milliseconds } from "./format";
import { look, shown, theme, useValue, zoom } from "./store";

const BARS = 40;

export function RequestViews(props: { of: Requests; connection: Connection; marks: Mark[] }) {
  const { of, connection, marks } = props;
  const what = of.messages ? "message" : "request";
  useValue(zoom);
  useValue(theme);
  const [slowest, setSlowest] = useState(false);
  const lines = useMemo(
    () => [
      {
        label: `delay of a ${what}`,
        values: of.delay.map((value) => (value === null ? null : value * 1e3)),
        colour: () => ink("accent"),
        points: true,
      },
    ],
    [of],
  );
  const missing = of.delay.filter((value) => value === null).length;
  const lost = missing ? `× at 0: ${missing} ${of.messages ? "lost" : "unanswered"}` : "";
  const { min, max } = shown();
  const inSight = of.sent.flatMap((sent, row) => (sent <= max && sent + (of.delay[row] ?? 0) >= min ? [row] : []));
  const length = (row: number) => of.delay[row] ?? Infinity;
  const chosen = (slowest ? [...inSight].sort((a, b) => length(b) - length(a)) : inSight).slice(0, BARS);
  const most = Math.max(1e-9, ...chosen.map((row) => of.delay[row] ?? 0));
  return (
    <section aria-label="Requests" class="requests">
      <h2>{of.messages ? "Messages" : "Requests"}</h2>
      <Chart name="delays" title="Delay, by time of sending" unit="ms" times={of.sent} lines={lines} marks={marks} over={crosses(of)} note={lost} />
      <p>
        <Swatch colour={() => ink("waiting")} /> {of.by && !of.sampled ? "until the first byte of the answer was sent" : "from the request to the end of the answer"}{" "}
        {of.by &&
          connection.subflows.map((lane) => (
            <span key={lane.id}>
              <Swatch colour={() => laneColour(lane)} /> {of.sampled ? "part of the answer by" : "answer by"} {lane.label}{" "}
            </span>
          ))}
        <label>
          <input type="checkbox" checked={slowest} onChange={(event) => setSlowest(event.currentTarget.checked)} /> longest
          first
        </label>
      </p>
      <ol class="bars" data-table="requests">
        {chosen.map((row) => (
          <li key={row}>
            <button
              type="button"
              class="plain"
              onClick={() => look((of.sent[row] ?? 0) + (of.delay[row] ?? 0) / 2, Math.max(of.delay[row] ?? 0.1, 0.01))}
            >
              {of.index[row]}
            </button>
            <Bar of={of} row={row} connection={connection} most={most} />
            <span class="number">{of.delay[row] === null ? (of.messages ? "lost" : "unanswered") : milliseconds(of.delay[row] ?? null)}</span>
          </li>
        ))}
      </ol>
      <p class="quiet">
        {inSight.length > BARS ? `${BARS} of the ${inSight.length} in the time that is shown. ` : ""}
        {of.sent.length < of.of ? `The page has the longest ${of.sent.length} of ${of.of}. ` : ""}
        {connection.subflows.length > 0 && paths(of)}
      </p>
    </section>
  );
}

/** Marks at 0 what has no delay, at its time of sending. */
function crosses(of: Requests): (plot: uPlot) => void {
  return (plot) => {
    const { ctx } = plot;
    const arm = 4 * devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = ink("bad");
    ctx.lineWidth = 1.6 * devicePixelRatio;
    ctx.beginPath();
    of.sent.forEach((sent, row) => {
      if (of.delay[row] !== null) return;
      const [x, y] = [plot.valToPos(sent, "x", true), plot.valToPos(0, "y", true)];
      if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) return;
      ctx.moveTo(x - arm, y - arm);
      ctx.lineTo(x + arm, y + arm);
      ctx.moveTo(x - arm, y + arm);
      ctx.lineTo(x + arm, y - arm);
    });
    ctx.stroke();
    ctx.restore();
  };
}

/** What the bars do not tell of paths. */
function paths(of: Requests): string {
  if (of.messages) return "";
  const more = "Runs with segments (run --plot) tell more, with one request at a time.";
  if (!of.by) return `The path of an answer is not known: requests overlap, or lie closer together than samples. ${more}`;
  if (!of.sampled) return "";
  const without = of.by.filter((each) => each === null).length;
  return `The lower half is the part of each path, of the samples around a request${
    without ? `; ${without} of ${of.by.length} lie too close together for that` : ""
  }. ${more}`;
}

function Bar(props: { of: Requests; row: number; connection: Connection; most: number }) {
  const { of, row, connection, most } = props;
  const delay = of.delay[row];
  if (delay === null || delay === undefined) return <svg class="bar" width="100%" height="12" aria-hidden="true" />;
  const bytes = of.by?.[row] ?? [];
  const total = bytes.reduce((sum, each) => sum + each, 0) || 1;
  const share = (place: number) => (bytes[place] ?? 0) / total;
  if (of.sampled) {
    const length = delay / most;
    let at = 0;
    return (
      <svg class="bar" width="100%" height="12" aria-hidden="true">
        <rect x="0" width={`${100 * length}%`} height={of.by?.[row] ? 6 : 12} fill={ink("waiting")} />
        {of.by?.[row] &&
          connection.subflows.map((lane, place) => {
            const x = at;
            at += length * share(place);
            return <rect key={lane.id} x={`${100 * x}%`} y="6" width={`${100 * length * share(place)}%`} height="6" fill={laneColour(lane)} />;
          })}
      </svg>
    );
  }
  const first = of.by ? (of.first[row] ?? delay) : delay;
  const parts = [{ part: first / most, colour: ink("waiting") }];
  connection.subflows.forEach((lane, place) => {
    parts.push({ part: ((delay - first) / most) * share(place), colour: laneColour(lane) });
  });
  let from = 0;
  return (
    <svg class="bar" width="100%" height="12" aria-hidden="true">
      {parts.map(({ part, colour }, index) => {
        const x = from;
        from += part;
        return <rect key={index} x={`${100 * x}%`} width={`${100 * part}%`} height="12" fill={colour} />;
      })}
    </svg>
  );
}
