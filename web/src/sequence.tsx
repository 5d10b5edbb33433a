// The time-sequence view: every segment that carries data, down to single ones.

import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { Chart, type Mark } from "./chart";
import { laneColour } from "./colour";
import { lastUpTo, type Connection, type Sequence } from "./data";
import { seconds } from "./format";
import { shown } from "./store";

const KINDS = ["data", "retransmission", "reinjection"];
const MEGA = 1e6;
const HEIGHT = 300;
/** Pixels around the pointer in which a segment is looked for. */
const NEAR = 14;

export function SequenceChart(props: { of: Sequence; connection: Connection; marks: Mark[] }) {
  const { of, connection, marks } = props;
  const lines = useMemo(
    () => [{ label: "segments", values: Array.from(of.dsn, (dsn) => dsn / MEGA), colour: () => "transparent", points: true }],
    [of],
  );
  const lanes = useMemo(() => new Map(connection.subflows.map((lane) => [lane.id, lane])), [connection]);
  const whole = of.count
    ? `${of.of} segments; those sent for the first time are put together by time, repeated ones are, too, but apart`
    : `${of.of} segments: a bar each; × retransmitted, + reinjected`;

  const draw = (plot: uPlot) => {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    const [first, beyond] = visible(of);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const colours = new Map([...lanes].map(([id, lane]) => [id, laneColour(lane)]));
    for (const repeated of [false, true]) {
      for (let row = first; row < beyond; row += 1) {
        const kind = of.kind[row] ?? 0;
        if (kind > 0 !== repeated) continue;
        const x = plot.valToPos(of.t[row] as number, "x", true);
        const low = plot.valToPos((of.dsn[row] as number) / MEGA, "y", true);
        const high = plot.valToPos(((of.dsn[row] as number) + (of.length[row] as number)) / MEGA, "y", true);
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
      const dsn = of.dsn[row] as number;
      low = Math.min(low, dsn);
      high = Math.max(high, dsn + (of.length[row] as number));
    }
    if (!(high > low)) return [0, 1];
    const room = (high - low) * 0.04;
    return [Math.max(0, (low - room) / MEGA), (high + room) / MEGA];
  };

  const tell = (plot: uPlot, left: number, top: number): string => {
    const row = under(plot, of, left, top);
    if (row === null) return whole;
    const { min, max } = shown();
    const from = of.dsn[row] as number;
    const length = of.length[row] as number;
    const many = of.count && (of.count[row] ?? 1) > 1 ? `${of.count[row]} segments, ` : "";
    const lane = lanes.get(of.lane[row] ?? -1)?.label ?? "";
    return `${seconds(of.t[row] as number, (max - min) / 1e4)}: ${many}${KINDS[of.kind[row] ?? 0]} on ${lane}, bytes ${from} to ${from + length} (${length} B), sequence number ${of.seq[row]}`;
  };

  return (
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
    />
  );
}

/** The first row in sight and the one behind the last. */
function visible(of: Sequence): [number, number] {
  const { min, max } = shown();
  return [lastUpTo(of.t, min - Number.EPSILON) + 1, lastUpTo(of.t, max) + 1];
}

function under(plot: uPlot, of: Sequence, left: number, top: number): number | null {
  const from = lastUpTo(of.t, plot.posToVal(left - NEAR, "x"));
  const to = lastUpTo(of.t, plot.posToVal(left + NEAR, "x"));
  let best: number | null = null;
  let least = NEAR * NEAR;
  for (let row = Math.max(from, 0); row <= to; row += 1) {
    const x = plot.valToPos(of.t[row] as number, "x") - left;
    const low = plot.valToPos((of.dsn[row] as number) / MEGA, "y") - top;
    const high = plot.valToPos(((of.dsn[row] as number) + (of.length[row] as number)) / MEGA, "y") - top;
    const y = low >= 0 && high <= 0 ? 0 : Math.min(Math.abs(low), Math.abs(high));
    const away = x * x + y * y;
    if (away < least) {
      least = away;
      best = row;
    }
  }
  return best;
}
