// Single segments of a connection, both directions, and what their headers say.

import { numbers, summed, type Column, type Packed } from "./data";

export interface PackedSegments {
  of: number;
  every: [number, number];
  t: Packed;
  side: number[];
  lane: number[];
  seq: Packed;
  ack: Packed;
  length: number[];
  kind: number[];
  flags: number[];
  texts: [string[], string[]];
  options: number[];
  stamp: Packed;
  echo: Packed;
  data_ack: Packed;
  data_seq: Packed;
  data_bytes: Packed;
  data_fin: number[];
  sacks: { row: Packed; begin: Packed; length: number[]; twice: number[] };
}

/** Columns over rows; `order` has the rows by time. */
export interface Segments {
  of: number;
  every: [number, number];
  order: Uint32Array;
  /** In the order of time. */
  times: Float64Array;
  t: Float64Array;
  side: number[];
  lane: number[];
  seq: Column;
  ack: Column;
  length: number[];
  kind: number[];
  flags: (row: number) => string;
  /** Everything else that the header says, as text. */
  said: (row: number) => string;
  /** Whether it says more than timestamps and DSS, or was sent again. */
  special: (row: number) => boolean;
}

const NANO = 1e9;
export const SIDES = ["client", "server"] as const;
export const KINDS = ["ack", "data", "retransmission", "reinjection"] as const;
const PLAIN = new Set(["ACK", "PSH, ACK", "1-RTT"]);
const USUAL = /^(?:(?:PATH_)?ACK[^,]*|STREAM \d+|PADDING)(?:, (?:(?:PATH_)?ACK[^,]*|STREAM \d+|PADDING))*$/;

export function segmentsOf(packed: PackedSegments): Segments {
  const t = Float64Array.from(numbers(packed.t, NANO));
  const order = Uint32Array.from(t.keys()).sort((a, b) => (t[a] as number) - (t[b] as number) || a - b);
  const column = { stamp: summed(packed.stamp), echo: summed(packed.echo), ack: summed(packed.data_ack), seq: summed(packed.data_seq) };
  const [flags, options] = packed.texts;
  const last = new Set(packed.data_fin);
  const answers = new Map<number, string[]>();
  const begins = numbers(packed.sacks.begin);
  numbers(packed.sacks.row).forEach((row, place) => {
    const begin = begins[place] as number;
    const block = `${begin}-${begin + (packed.sacks.length[place] ?? 0)}${packed.sacks.twice[place] ? " (D-SACK)" : ""}`;
    answers.set(row, [...(answers.get(row) ?? []), block]);
  });
  const flagsOf = (row: number) => flags[packed.flags[row] ?? 0] ?? "";
  const optionsOf = (row: number) => options[packed.options[row] ?? 0] ?? "";
  return {
    of: packed.of,
    every: packed.every,
    order,
    times: Float64Array.from(order, (row) => t[row] as number),
    t,
    side: packed.side,
    lane: packed.lane,
    seq: summed(packed.seq),
    ack: summed(packed.ack),
    length: packed.length,
    kind: packed.kind,
    flags: flagsOf,
    said: (row) => {
      const said: string[] = [];
      const blocks = answers.get(row);
      if (blocks) said.push(`SACK ${blocks.join(", ")}`);
      const dss: string[] = [];
      if (column.ack[row] != null) dss.push(`ack ${column.ack[row]}`);
      const bytes = packed.data_bytes[row];
      if (bytes != null) dss.push(column.seq[row] == null ? "" : `seq ${column.seq[row]}`, bytes === 0 ? "infinite mapping" : `${bytes} B`);
      if (last.has(row)) dss.push("DATA_FIN");
      if (dss.length > 0) said.push(`DSS ${dss.filter((part) => part).join(", ")}`);
      if (optionsOf(row)) said.push(optionsOf(row));
      if (column.stamp[row] != null) said.push(`TSval ${column.stamp[row]}, TSecr ${column.echo[row]}`);
      return said.join("; ");
    },
    special: (row) =>
      !PLAIN.has(flagsOf(row)) ||
      (packed.kind[row] ?? 0) > 1 ||
      last.has(row) ||
      answers.has(row) ||
      !(optionsOf(row) === "" || USUAL.test(optionsOf(row))),
  };
}
