// Where the axis of a rate ends: above what arrived, so that data that waited for reassembly and is delivered at once
// does not squash the rest. The rule is that of the figures (plots/smoothing.py).

import type uPlot from "uplot";
import type { Line } from "./chart";
import { ink } from "./colour";
import { lastKnown, lastUpTo, type Series } from "./data";
import { significant } from "./format";
import { shown } from "./store";

/** A rate of arrival counts as a burst beyond this multiple of the rate that 99 % of the samples keep below. */
const BURST = 2;
const PART = 0.99;
/** What is only so much above the end of the axis stretches it. */
const NEAR = 1.3;
const ROOM = 1.06;
const SIZE = 4;

/** The rate that an axis must have room for: of what arrived on all subflows together. The first column is goodput. */
export function usual(of: Series): number {
  const lanes = of.v.slice(1);
  const arrived = Array.from(of.t, (_, row) => lanes.reduce((sum, lane) => sum + (lane[row] ?? 0), 0))
    .slice(1) // the first row is where the first interval begins
    .sort((a, b) => a - b);
  const most = arrived[arrived.length - 1] ?? 0;
  const below = arrived[Math.floor(PART * (arrived.length - 1))] ?? 0;
  return below === 0 || most <= BURST * below ? most : below;
}

export interface Ceiling {
  range: () => [number, number];
  draw: (plot: uPlot) => void;
  /** What is cut off, in words; empty where nothing is. */
  note: string;
}

/** An axis that ends above `room`, with a mark at its end where a line goes beyond. */
export function ceiling(times: ArrayLike<number>, lines: readonly Line[], room: number, unit: string): Ceiling {
  const peak = (first: number, last: number) => {
    let most = 0;
    for (const line of lines) for (let row = first; row <= last; row += 1) most = Math.max(most, line.values[row] ?? 0);
    return most;
  };
  const top = (most: number) => (room > 0 && most > NEAR * room ? room : most);
  const whole = peak(0, times.length - 1);
  /** The first and the last row of what is shown, and one more on each side. */
  const rows = (): [number, number] => {
    const { min, max } = shown();
    return [Math.max(0, lastUpTo(times, min)), Math.min(times.length - 1, lastUpTo(times, max) + 1)];
  };
  return {
    range: () => [0, top(peak(...rows())) * ROOM || 1],
    draw: (plot) => {
      const { ctx, bbox } = plot;
      const end = plot.scales["y"]?.max ?? Infinity;
      const size = SIZE * devicePixelRatio;
      const [first, last] = rows();
      ctx.save();
      for (const [index, line] of lines.entries()) {
        if (!plot.series[index + 1]?.show) continue;
        ctx.fillStyle = line.fill ? ink("ink") : line.colour();
        for (let row = first; row <= last; row += 1) {
          if ((line.values[row] ?? 0) <= end) continue;
          const before = line.step === -1 ? lastKnown(line.values, row - 1) : row;
          if (before < 0) continue;
          const at = ((times[before] as number) + (times[row] as number)) / 2;
          const x = plot.valToPos(at, "x", true);
          if (x < bbox.left || x > bbox.left + bbox.width) continue;
          ctx.beginPath();
          ctx.moveTo(x, bbox.top - size);
          ctx.lineTo(x - size, bbox.top + size);
          ctx.lineTo(x + size, bbox.top + size);
          ctx.fill();
        }
      }
      ctx.restore();
    },
    note: top(whole) < whole ? `▲ cut off: up to ${significant(whole)} ${unit}, data that waited and was delivered at once` : "",
  };
}
