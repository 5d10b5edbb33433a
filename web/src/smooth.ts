// The mean rate over an interval that hides what sampling and requests cut a transfer into. The rule is that of the
// figures (plots/smoothing.py); between requests, it is also the time of a few of them.

import type { ConnectionSummary, Series } from "./data";

/** Median RTTs of the slowest subflow, and requests, in an interval. */
const RTTS = 4;
const REQUESTS = 4;
/** Intervals on the axis of time at most. */
const PARTS = 500;

/** Seconds over which the rate of a connection is a mean. `end` is that of the axis of time. */
export function interval(of: ConnectionSummary, series: Series, end: number): number {
  const sampled = (series.t[1] ?? 0) - (series.t[0] ?? 0);
  const rtts = of.subflows.map((each) => each.srtt_ms?.p50).filter((each) => typeof each === "number");
  const asked = of.requests.count >= 2 && of.completion_s !== null ? (REQUESTS * of.completion_s) / of.requests.count : 0;
  return Math.max(sampled, (RTTS * Math.max(0, ...rtts)) / 1000, asked, end / PARTS);
}

/** Mbps at each time of a running total in MB: the mean over the interval that ends there. */
export function meanRate(total: Series, seconds: number): (number | null)[] {
  const at = total.t;
  const of = total.v[0] ?? [];
  let from = 0;
  return at.map((time, row) => {
    const begin = Math.max(time - seconds, at[0] ?? 0);
    while (from + 1 < row && (at[from + 1] as number) <= begin) from += 1;
    const passed = time - begin;
    const value = of[row];
    if (passed <= 0 || typeof value !== "number") return null;
    const [early, late] = [at[from] as number, at[from + 1] as number];
    const part = late > early ? Math.min(1, (begin - early) / (late - early)) : 0;
    const before = (of[from] ?? 0) + part * ((of[from + 1] ?? 0) - (of[from] ?? 0));
    return ((value - before) * 8) / passed;
  });
}
