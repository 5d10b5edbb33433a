// The time-sequence view: every segment that carries data, down to single ones; of one subflow with its ACKs.

import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import { Chart, type Mark } from "./chart";
import { ink, laneColour } from "./colour";
import { lastUpTo, type Answers, type Connection, type Sequence } from "./data";
import { seconds } from "./format";
import { SIDES, type Segments } from "./segments";
import { shown } from "./store";

const KINDS = ["data", "retransmission", "reinjection"];
const MEGA = 1e6;
const HEIGHT = 300;
/** Pixels around the pointer in which a segment is looked for. */
const NEAR = 14;

/** What is drawn, and the place of each row on the vertical axis. */
interface View {
  of: Sequence;
  low: Float64Array;
  extent: Float64Array;
}

export function SequenceChart(props: {
  of: Sequence;
  answers: Answers | undefined;
  segments: Segments | undefined;
  connection: Connection;
  marks: Mark[];
}) {
  const { answers, segments, connection, marks } = props;
  const sender = connection.receiver === "server" ? "client" : "server";
  const [chosen, setChosen] = useState<number | null>(null);
  const number = answers && props.of.lane.includes(chosen ?? -1) ? chosen : null;
  const view = useMemo(() => (number === null ? inStream(props.of) : inSubflow(props.of, number)), [props.of, number]);
  const { of } = view;
  const lines = useMemo(
    () => [{ label: "segments", values: Array.from(view.low, (low) => low / MEGA), colour: () => "transparent", points: true }],
    [view],
  );
  const lanes = useMemo(() => new Map(connection.subflows.map((lane) => [lane.id, lane])), [connection]);
  const whole =
    (of.count
      ? `${of.of} segments; those sent for the first time are put together by time, repeated ones are, too, but apart`
      : `${of.of} segments: a bar each; × retransmitted, + reinjected`) +
    (number === null ? "" : "; line: ACKs when they were sent; grey bars: SACK; diamonds: data that arrived twice (D-SACK)");

  const draw = (plot: uPlot) => {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    const [first, beyond] = visible(of);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    if (answers && number !== null) drawAnswers(plot, answers, number);
    const colours = new Map([...lanes].map(([id, lane]) => [id, laneColour(lane)]));
    for (const repeated of [false, true]) {
      for (let row = first; row < beyond; row += 1) {
        const kind = of.kind[row] ?? 0;
        if (kind > 0 !== repeated) continue;
        const x = plot.valToPos(of.t[row] as number, "x", true);
        const low = plot.valToPos((view.low[row] as number) / MEGA, "y", true);
        const high = plot.valToPos(((view.low[row] as number) + (view.extent[row] as number)) / MEGA, "y", true);
        ctx.strokeStyle = ctx.fillStyle = colours.get(of.lane[row] ?? 0) ?? "gray";
        if (!repeated) {
          ctx.fillRect(x - ratio * 0.75, high, ratio * 1.5, Math.max(low - high, ratio * 1.5));
          continue;
        }
        const middle = (low + high) / 2;
        const arm = 4 * ratio;
        ctx.lineWidth = 1.6 * ratio;
        ctx.beginPath();
        if (kind === 1) {
          ctx.moveTo(x - arm, middle - arm);
          ctx.lineTo(x + arm, middle + arm);
          ctx.moveTo(x - arm, middle + arm);
          ctx.lineTo(x + arm, middle - arm);
        } else {
          ctx.moveTo(x - arm, middle);
          ctx.lineTo(x + arm, middle);
          ctx.moveTo(x, middle - arm);
          ctx.lineTo(x, middle + arm);
        }
        ctx.stroke();
      }
    }
    ctx.restore();
  };

  const range = (): [number, number] => {
    const [first, beyond] = visible(of);
    let low = Infinity;
    let high = -Infinity;
    for (let row = first; row < beyond; row += 1) {
      const begin = view.low[row] as number;
      low = Math.min(low, begin);
      high = Math.max(high, begin + (view.extent[row] as number));
    }
    if (!(high > low)) return [0, 1];
    const room = (high - low) * 0.04;
    return [Math.max(0, (low - room) / MEGA), (high + room) / MEGA];
  };

  const tell = (plot: uPlot, left: number, top: number): string => {
    const row = under(plot, view, left, top);
    if (row === null) return whole;
    const { min, max } = shown();
    const from = of.dsn[row] as number;
    const length = of.length[row] as number;
    const sack = answers && number !== null ? told(answers, number, of.t[row] as number) : "";
    const many = of.count && (of.count[row] ?? 1) > 1 ? `${of.count[row]} segments, ` : "";
    const lane = lanes.get(of.lane[row] ?? -1)?.label ?? "";
    const said = segments && !many ? header(segments, sender, of, row) : "";
    return `${seconds(of.t[row] as number, (max - min) / 1e4)}: ${many}${KINDS[of.kind[row] ?? 0]} on ${lane}, bytes ${from} to ${from + length} (${length} B), sequence number ${of.seq[row]}${said && `; ${said}`}${sack}`;
  };

  const snap = (plot: uPlot, left: number, top: number): number | null => {
    const row = under(plot, view, left, top);
    return row === null ? null : (of.t[row] as number);
  };

  return (
    <>
      {answers && (
        <label class="numbers">
          time and sequence of{" "}
          <select value={number ?? ""} onChange={(event) => setChosen(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
            <option value="">the stream</option>
            {[...lanes.values()].map((lane) => (
              <option value={String(lane.id)} key={lane.id}>
                {lane.label}, with its ACKs
              </option>
            ))}
          </select>
        </label>
      )}
      <Chart
        name="sequence"
        title={connection.lane === "path" ? "Stream position of each packet" : "Time and sequence"}
        unit="MB"
        times={of.t}
        lines={lines}
        marks={marks}
        note={whole}
        height={HEIGHT}
        draw={draw}
        range={range}
        tell={tell}
        snap={snap}
      />
    </>
  );
}

/** What the header of a drawn segment says. */
function header(segments: Segments, sender: string, of: Sequence, row: number): string {
  const time = of.t[row] as number;
  for (let place = lastUpTo(segments.times, time); place >= 0 && segments.times[place] === time; place -= 1) {
    const found = segments.order[place] as number;
    if (SIDES[segments.side[found] ?? 0] === sender && segments.lane[found] === of.lane[row] && segments.seq[found] === of.seq[row]) {
      return segments.said(found);
    }
  }
  return "";
}

function inStream(of: Sequence): View {
  return { of, low: of.dsn, extent: of.length };
}

function inSubflow(of: Sequence, number: number): View {
  const rows = [...of.lane.keys()].filter((row) => of.lane[row] === number);
  const taken = (column: Float64Array) => Float64Array.from(rows, (row) => column[row] as number);
  const own: Sequence = {
    of: rows.reduce((sum, row) => sum + (of.count?.[row] ?? 1), 0),
    t: taken(of.t),
    lane: rows.map(() => number),
    dsn: taken(of.dsn),
    seq: taken(of.seq),
    length: taken(of.length),
    kind: rows.map((row) => of.kind[row] ?? 0),
    count: of.count && rows.map((row) => of.count?.[row] ?? 1),
    span: of.span && taken(of.span),
  };
  return { of: own, low: own.seq, extent: own.span ?? own.length };
}

/** What the receiver acknowledged of a subflow: the ACKs as stairs, SACK blocks as bars. */
function drawAnswers(plot: uPlot, answers: Answers, number: number): void {
  const { ctx } = plot;
  const ratio = devicePixelRatio;
  const x = (at: number) => plot.valToPos(at, "x", true);
  const y = (at: number) => plot.valToPos(at / MEGA, "y", true);
  const { sacks } = answers;
  ctx.strokeStyle = ctx.fillStyle = ink("waiting");
  const [firstBlock, beyondBlocks] = visible(sacks);
  for (let row = firstBlock; row < beyondBlocks; row += 1) {
    if (sacks.lane[row] !== number) continue;
    const begin = sacks.begin[row] as number;
    const at = x(sacks.t[row] as number);
    const [low, high] = [y(begin), y(begin + (sacks.length[row] ?? 0))];
    if (sacks.twice[row]) {
      const [middle, arm] = [(low + high) / 2, 3 * ratio];
      ctx.beginPath();
      ctx.moveTo(at, middle - arm);
      ctx.lineTo(at + arm, middle);
      ctx.lineTo(at, middle + arm);
      ctx.lineTo(at - arm, middle);
      ctx.fill();
    } else {
      ctx.fillRect(at - ratio * 0.5, high, ratio, Math.max(low - high, ratio));
    }
  }
  ctx.strokeStyle = ink("ink");
  ctx.lineWidth = ratio;
  ctx.beginPath();
  const [first, beyond] = visible(answers);
  let before: number | null = null;
  for (let row = Math.max(0, lastOf(answers, number, first)); row < beyond; row += 1) {
    if (answers.lane[row] !== number) continue;
    const [at, level] = [x(answers.t[row] as number), y(answers.ack[row] as number)];
    if (before === null) ctx.moveTo(at, level);
    else ctx.lineTo(at, before);
    ctx.lineTo(at, level);
    before = level;
  }
  ctx.stroke();
}

/** The subflow's last ACK before a row. */
function lastOf(answers: Answers, number: number, row: number): number {
  let at = row - 1;
  while (at >= 0 && answers.lane[at] !== number) at -= 1;
  return at;
}

/** What the receiver said of a subflow last before a time. */
function told(answers: Answers, number: number, at: number): string {
  const row = lastOf(answers, number, lastUpTo(answers.t, at) + 1);
  if (row < 0) return "";
  const time = answers.t[row] as number;
  const { sacks } = answers;
  const blocks: string[] = [];
  for (let block = lastUpTo(sacks.t, time); block >= 0 && sacks.t[block] === time; block -= 1) {
    const begin = sacks.begin[block] as number;
    if (sacks.lane[block] === number) blocks.unshift(`${begin}-${begin + (sacks.length[block] ?? 0)}`);
  }
  return `; last ACK until then ${answers.ack[row]}${blocks.length ? `, SACK ${blocks.join(", ")}` : ""}`;
}

/** The first row in sight and the one behind the last. */
function visible(of: { t: Float64Array }): [number, number] {
  const { min, max } = shown();
  return [lastUpTo(of.t, min - Number.EPSILON) + 1, lastUpTo(of.t, max) + 1];
}

function under(plot: uPlot, view: View, left: number, top: number): number | null {
  const { of } = view;
  const from = lastUpTo(of.t, plot.posToVal(left - NEAR, "x"));
  const to = lastUpTo(of.t, plot.posToVal(left + NEAR, "x"));
  let best: number | null = null;
  let least = NEAR * NEAR;
  for (let row = Math.max(from, 0); row <= to; row += 1) {
    const x = plot.valToPos(of.t[row] as number, "x") - left;
    const low = plot.valToPos((view.low[row] as number) / MEGA, "y") - top;
    const high = plot.valToPos(((view.low[row] as number) + (view.extent[row] as number)) / MEGA, "y") - top;
    const y = low >= 0 && high <= 0 ? 0 : Math.min(Math.abs(low), Math.abs(high));
    const away = x * x + y * y;
    if (away < least) {
      least = away;
      best = row;
    }
  }
  return best;
}
