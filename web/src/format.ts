// Numbers as the terminal prints them.

import type { ConnectionSummary } from "./data";

/** The nearest whole number; of two the even one, as Python has it. */
function even(value: number): number {
  return value - Math.floor(value) === 0.5 ? 2 * Math.round(value / 2) : Math.round(value);
}

/** So many decimals of a number, which may lie exactly between two. */
export function fixed(value: number, decimals: number): string {
  const isBetween = Number.isInteger(value * 2 ** (decimals + 1));
  return (isBetween ? even(value * 10 ** decimals) / 10 ** decimals : value).toFixed(decimals);
}

/** The rate of a connection; empty of one that carried nothing, and of pings, whose bytes are no transfer. */
export function goodput(of: ConnectionSummary): string {
  return of.bytes && of.transport !== "icmp" ? mbps(of.goodput_mbps) : "";
}

/** Two decimals, more for a rate that would be nothing with them. */
export function mbps(rate: number | null): string {
  if (rate === null) return "";
  return rate >= 0.1 || rate === 0 ? fixed(rate, 2) : significant(rate, 2);
}

export function percent(part: number, decimals = 1): string {
  return `${fixed(part * 100, decimals)}%`;
}

export function significant(value: number, digits = 3): string {
  return value === 0 ? "0" : String(Number(value.toPrecision(digits)));
}

/** A mean with its 95 % interval, rounded to its second digit: ± half of it, or from where to where. */
export function estimated(mean: number, low: number, high: number): string {
  const half = (high - low) / 2;
  const isSymmetric = Math.abs(high - mean - (mean - low)) <= 0.1 * Math.max(high - mean, mean - low);
  if (isSymmetric) return `${rounded(mean, half)} ± ${rounded(half, half)}`;
  return `${rounded(mean, mean - low)} (${rounded(low, low)} to ${rounded(high, high - mean)})`;
}

/** As many digits as leave two of the uncertainty; four without one. */
export function rounded(value: number, uncertainty = 0): string {
  const magnitude = (of: number) => (of === 0 ? 0 : Math.floor(Math.log10(Math.abs(of))));
  const places = Math.min(uncertainty ? 1 - magnitude(uncertainty) : 3 - magnitude(value), 20);
  const unit = 10 ** Math.max(-places, 0);
  const text = places > 0 ? fixed(value, places) : String(even(value / unit) * unit);
  const decimals = Math.max(places, 0);
  return Number(text).toLocaleString("en", { minimumFractionDigits: uncertainty ? decimals : 0, maximumFractionDigits: decimals });
}

/** A time with as many digits as tell it from its neighbours at this zoom. */
export function seconds(value: number, step = 1e-3): string {
  const decimals = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step))));
  return `${fixed(value, decimals)} s`;
}

/** A time in a stretch of so many seconds: milliseconds, or finer where that is short. */
export function instant(value: number, length: number): string {
  return seconds(value, Math.min(1e-3, length / 1000));
}

/** How long a transfer took, with at least two digits. */
export function took(value: number | null): string {
  return value === null ? "" : seconds(value, Math.min(1e-3, value / 100));
}

/** A length of time: milliseconds below a second. */
export function duration(value: number): string {
  if (value >= 1) return `${value >= 999.5 ? Math.round(value) : value.toPrecision(3)} s`;
  return value >= 1e-3 ? `${significant(value * 1e3)} ms` : `${significant(value * 1e6)} µs`;
}

/** The 95th percentile of requests' delays, which 20 requests support (`polypath.results.metrics.FEWEST`). */
export function percentile95(of: ConnectionSummary["requests"]): string {
  return of.count >= 20 ? milliseconds(of.p95_s) : "";
}

export function milliseconds(value: number | null): string {
  return value === null ? "" : `${fixed(value * 1e3, 1)} ms`;
}

export function amount(bytes: number): string {
  for (const [size, unit] of [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ] as const) {
    if (bytes >= size) return `${significant(bytes / size)} ${unit}`;
  }
  return `${bytes} B`;
}

export function rate(bits: number | null): string {
  if (bits === null) return "";
  for (const [size, unit] of [
    [1e9, "Gbps"],
    [1e6, "Mbps"],
    [1e3, "kbps"],
  ] as const) {
    if (bits >= size) return `${significant(bits / size, 4)} ${unit}`;
  }
  return `${bits} bit/s`;
}

/** A number on an axis whose numbers are `step` apart. */
export function tick(value: number, step: number): string {
  const digits = value === 0 ? 1 : Math.floor(Math.log10(Math.abs(value)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9) + 2;
  const rounded = Number(value.toPrecision(Math.min(Math.max(digits, 1), 15)));
  return Math.abs(rounded) >= 1e6 ? rounded.toExponential() : String(rounded);
}

/** A time on an axis whose numbers are `step` apart. */
export function timeTick(value: number, step: number): string {
  return String(Number(value.toFixed(Math.min(9, Math.max(0, Math.ceil(-Math.log10(step)) + 1)))));
}
