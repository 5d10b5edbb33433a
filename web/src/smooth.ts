// Rates as means over an interval that hides how sampling and requests cut a transfer up. The rule is that of the
// figures (plots/smoothing.py); where requests follow each other, the interval is that of a few of them.

import type { Column, ConnectionSummary, Series } from "./data";

/** RTTs of the slowest subflow, and requests, in an interval. */
const RTTS = 4;
const REQUESTS = 4;
/** Intervals in the time of a connection: at most, and at least. */
const MOST = 500;
const LEAST = 20;

/** Seconds over which the rates of a connection are means: a round number, or the time between samples. */
export function interval(of: ConnectionSummary, rates: Series): number {
  const sampled = (rates.t[2] ?? 0) - (rates.t[1] ?? 0);
  const whole = (rates.t[rates.t.length - 1] ?? 0) - (rates.t[0] ?? 0);
  const rtts = of.subflows.flatMap((each) => (typeof each.srtt_ms?.p50 === "number" ? [each.srtt_ms.p50 / 1000] : []));
  const asked = of.requests.count >= LEAST ? (REQUESTS * whole) / of.requests.count : 0;
  const wanted = Math.max(RTTS * Math.max(0, ...rtts), asked, whole / MOST);
  return Math.max(sampled, round(Math.min(wanted, Math.max(asked, whole / LEAST))));
}

/** 1, 2 or 5 times a power of ten, the nearest by ratio. */
function round(value: number): number {
  if (value <= 0) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  const part = value / power;
  return (part < Math.SQRT2 ? 1 : part < Math.sqrt(10) ? 2 : part < Math.sqrt(50) ? 5 : 10) * power;
}

/** The same rates, each the mean over the interval that ends there. A row is of the time since the row before. */
export function smoothed(of: Series, seconds: number): Series {
  if (seconds <= ((of.t[2] ?? 0) - (of.t[1] ?? 0)) * 1.01) return of;
  return { ...of, v: of.v.map((column) => mean(of.t, column, seconds)) };
}

function mean(times: readonly number[], column: Column, seconds: number): Column {
  const totals: number[] = [0];
  for (let row = 1; row < times.length; row += 1) {
    totals.push((totals[row - 1] as number) + (column[row] ?? 0) * ((times[row] as number) - (times[row - 1] as number)));
  }
  let from = 0;
  return times.map((time, row) => {
    if (row === 0 || typeof column[row] !== "number") return column[row] ?? null;
    const begin = Math.max(time - seconds, times[0] as number);
    while (from + 1 < row && (times[from + 1] as number) <= begin) from += 1;
    const part = (begin - (times[from] as number)) / ((times[from + 1] as number) - (times[from] as number) || 1);
    const before = (totals[from] as number) + part * ((totals[from + 1] as number) - (totals[from] as number));
    return ((totals[row] as number) - before) / (time - begin || 1);
  });
}
