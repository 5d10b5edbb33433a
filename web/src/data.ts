// What the page is given: `polypath.report.page` writes it, and the names are those there.

import { segmentsOf, type PackedSegments, type Segments } from "./segments";

export interface Page {
  format: number;
  title: string;
  version: string;
  palette: string[];
  labs: Lab[];
  runs: Run[];
  sweeps: Sweep[];
}

export interface Lab {
  name: string;
  title: string;
  question: string;
  source: string;
  note: string;
  expectations: Expectation[];
}

export interface Expectation {
  name: string;
  published: string;
  bound: string;
  measured: string;
  verdict: "ok" | "known" | "stale" | "miss";
  cause: string;
}

export interface Run {
  name: string;
  /** As short as tells it from the other runs of the page. */
  short: string;
  scenario: string;
  lab: string | null;
  folder: string | null;
  values: Record<string, string>;
  seed: number;
  engine: string;
  end_s: number;
  interrupted: boolean;
  plan_sha256: string;
  recording_sha256: string;
  versions: Record<string, string>;
  summary: Summary;
  connections: Connection[];
  /** What the terminal prints besides connections. */
  further: Table[];
  network: Network | null;
  changes: Change[];
  /** What the plan changes, in words. */
  marks: { t: number; text: string }[];
  events: Happened[];
  events_of: number;
  /** Deflated, in base64, in a report. */
  data: string | PackedData;
}

/** First `words` columns of text, then figures. */
export interface Table {
  headings: string[];
  words: number;
  rows: string[][];
  note: string;
}

export interface Summary {
  interrupted: boolean;
  connections: ConnectionSummary[];
  links: LinkSummary[];
  counters: Record<string, Record<string, number>>;
}

export interface ConnectionSummary {
  name: string;
  transport: string;
  goodput_mbps: number | null;
  bytes: number;
  start_s: number;
  end_s: number;
  finished: boolean | null;
  completion_s: number | null;
  reassembly_max_bytes: number | null;
  requests: { count: number; unanswered: number; refused: number; median_s: number | null; p95_s: number | null };
  subflows: SubflowSummary[];
}

export interface SubflowSummary {
  id: number;
  source: string;
  destination: string;
  interface: string;
  backup: boolean;
  established_s: number | null;
  closed_s: number | null;
  /** This and the two below: null where bytes are not counted by path. */
  bytes: number | null;
  share: number | null;
  goodput_mbps: number | null;
  /** Part of all bytes sent; null where none was. */
  resent: number | null;
  reinjected_bytes: number | null;
  /** Of the samples; null without any. */
  srtt_ms: { mean: number | null; p50: number | null; p95: number | null; max: number | null } | null;
}

export interface LinkSummary {
  name: string;
  direction: Direction;
  utilisation: number;
  dropped_packets: number;
  max_queue_packets: number;
}

export type Direction = "forward" | "backward";

export interface Connection {
  id: number | null;
  lane: string;
  receiver: string;
  charted: boolean;
  /** What the table cannot say in a cell, as the terminal has it. */
  notes: string[];
  subflows: Lane[];
  /** What the links that bound it could carry, and what became of that; none where none was kept. */
  account: Account | null;
  causes: Cause[];
}

/** A subflow, or a path of QUIC: `path` has a colour, `shade` counts the subflows on it. */
export interface Lane {
  id: number;
  label: string;
  path: number;
  shade: number;
}

/** The bytes of the charges and those delivered add up to the capacity. */
export interface Account {
  capacity_bytes: number;
  delivered_bytes: number;
  duration_s: number;
  charges: Charge[];
}

export interface Charge {
  title: string;
  path: string;
  bytes: number;
  sentence: string;
  at_s: number;
}

export interface Cause {
  kind: string;
  time_s: number;
  sentence: string;
  at_s: number | null;
}

export interface Network {
  nodes: { name: string; kind: string; x: number; y: number }[];
  /** There are too many nodes for names, and too many links for what waits in their queues. */
  large?: boolean;
  links: Link[];
}

export interface Link {
  name: string;
  a: number;
  b: number;
  bend: number;
  /** The path that begins with it. */
  path: number | null;
  forward: Channel;
  backward: Channel;
}

export interface Channel {
  /** With a trace, what it gives on average. */
  rate_bps: number | null;
  trace: string | null;
  /** With Wi-Fi, the rate is the most that it gives. */
  wifi: boolean;
  delay_ns: number;
  loss: number | null;
  queue_packets: number | null;
  up: boolean;
}

export interface Change {
  t: number;
  link: number;
  direction: string;
  up: boolean;
}

export interface Happened {
  t: number;
  kind: string;
  host: string;
  connection: number | null;
  subflow: number | null;
  link: number | null;
  value: number | null;
  detail: string;
}

export interface Sweep {
  name: string;
  folder: string | null;
  axes: { name: string; labels: string[]; numbers: number[] | null }[];
  measures: { name: string; title: string; heading: string; printed: number }[];
  statistics: Estimate[];
  /** What `compare --by` said, as it is printed; empty of a sweep that was not compared. */
  compared: Compared[];
  points: Point[];
}

export interface Compared {
  connection: string;
  measure: string;
  base: string;
  /** The label on each axis that is not the seed. */
  place: Record<string, string>;
  figure: string;
  difference: string;
  p: string;
  verdict: string;
}

export interface Estimate {
  place: string[];
  connection: string;
  measure: string;
  n: number;
  unfinished: number;
  mean: number | null;
  median: number | null;
  low: number | null;
  high: number | null;
  method: string;
}

export interface Point {
  place: string[];
  seed: number;
  folder: string;
  state: "done" | "failed" | "missing";
  failure: string | null;
  run: number | null;
}

export type Packed = (number | null)[];

interface PackedChart {
  t: Packed;
  v: Packed[];
  of: number;
  extremes: number;
}

export interface PackedData {
  connections: Record<
    string,
    {
      rate?: PackedChart;
      delivered?: PackedChart;
      window?: PackedChart;
      flight?: PackedChart;
      rtt?: PackedChart;
      reassembly?: PackedChart;
      sequence?: {
        of: number;
        t: Packed;
        lane: number[];
        dsn: Packed;
        seq: Packed;
        length: Packed;
        kind: number[];
        count: number[] | null;
        span: Packed | null;
      };
      answers?: {
        t: Packed;
        lane: number[];
        ack: Packed;
        sacks: { t: Packed; lane: number[]; begin: Packed; length: number[]; twice: number[] };
      };
      requests?: {
        of: number;
        messages: boolean;
        index: Packed;
        sent: Packed;
        delay: Packed;
        first: Packed;
        by: (number[] | null)[] | null;
        sampled: boolean;
      };
      segments?: PackedSegments;
    }
  >;
  links: { t?: Packed; use?: Packed[]; kbps?: Packed[]; queue?: Packed[] };
  queues?: PackedChart & { links: { link: number; direction: Direction }[] };
}

export type Column = (number | null)[];

/** Series over the same times, in seconds; `of` is the number of samples before some were left out, and of `extremes` series their
 * least and greatest values were kept; 0: these are means. */
export interface Series {
  t: number[];
  v: Column[];
  of: number;
  extremes: number;
}

export interface Sequence {
  of: number;
  t: Float64Array;
  lane: number[];
  dsn: Float64Array;
  seq: Float64Array;
  length: Float64Array;
  kind: number[];
  count: number[] | null;
  /** What a row takes up in its subflow's numbers; null where that is `length`. */
  span: Float64Array | null;
}

/** What the receiver acknowledged of each subflow, in the subflow's numbers, and its SACK blocks. */
export interface Answers {
  t: Float64Array;
  lane: number[];
  ack: Float64Array;
  sacks: { t: Float64Array; lane: number[]; begin: Float64Array; length: number[]; twice: number[] };
}

export interface Requests {
  of: number;
  messages: boolean;
  index: number[];
  sent: number[];
  delay: Column;
  first: Column;
  /** Bytes of each answer by subflow; null of one that is not known. */
  by: (number[] | null)[] | null;
  /** Whether `by` is of samples: when the answer began is not known then. */
  sampled: boolean;
}

export interface ConnectionData {
  rate?: Series;
  delivered?: Series;
  window?: Series;
  flight?: Series;
  rtt?: Series;
  reassembly?: Series;
  sequence?: Sequence;
  answers?: Answers;
  requests?: Requests;
  segments?: Segments;
}

/** Every column lies in the order of links, forward before backward. */
export interface LinkData {
  t: number[];
  use: Column[];
  kbps: Column[];
  queue: Column[];
}

export interface RunData {
  connections: Map<number, ConnectionData>;
  links: LinkData;
  queues: (Series & { links: { link: number; direction: Direction }[] }) | null;
}

const MICRO = 1e6;
const NANO = 1e9;

/** The sums of the differences, each as a part of `unit`. */
export function summed(packed: Packed, unit = 1): Column {
  let sum = 0;
  return packed.map((step) => (step === null ? null : (sum += step) / unit));
}

export function numbers(packed: Packed, unit = 1): number[] {
  let sum = 0;
  return packed.map((step) => (sum += step ?? 0) / unit);
}

function series(packed: PackedChart, unit = 1): Series {
  return { t: numbers(packed.t, MICRO), v: packed.v.map((column) => summed(column, unit)), of: packed.of, extremes: packed.extremes };
}

async function inflated(text: string): Promise<PackedData> {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return (await new Response(stream).json()) as PackedData;
}

async function unpacked(given: string | PackedData): Promise<RunData> {
  const data = typeof given === "string" ? await inflated(given) : given;
  const connections = new Map<number, ConnectionData>();
  for (const [number, packed] of Object.entries(data.connections)) {
    const found: ConnectionData = {};
    if (packed.rate) found.rate = series(packed.rate, 1e6);
    if (packed.delivered) found.delivered = series(packed.delivered, 1e6);
    if (packed.window) found.window = series(packed.window);
    if (packed.flight) found.flight = series(packed.flight);
    if (packed.rtt) found.rtt = series(packed.rtt, 1e3);
    if (packed.reassembly) found.reassembly = series(packed.reassembly, 1e3);
    if (packed.sequence) {
      const { t, dsn, seq, length, span, ...rest } = packed.sequence;
      found.sequence = {
        ...rest,
        t: Float64Array.from(numbers(t, NANO)),
        dsn: Float64Array.from(numbers(dsn)),
        seq: Float64Array.from(numbers(seq)),
        length: Float64Array.from(numbers(length)),
        span: span && Float64Array.from(numbers(span)),
      };
    }
    if (packed.answers) {
      const { t, ack, sacks, lane } = packed.answers;
      found.answers = {
        lane,
        t: Float64Array.from(numbers(t, NANO)),
        ack: Float64Array.from(numbers(ack)),
        sacks: { ...sacks, t: Float64Array.from(numbers(sacks.t, NANO)), begin: Float64Array.from(numbers(sacks.begin)) },
      };
    }
    if (packed.requests) {
      const { index, sent, delay, first, ...rest } = packed.requests;
      const seconds = (column: Packed) => column.map((value) => (value === null ? null : value / MICRO));
      found.requests = {
        ...rest,
        index: numbers(index),
        sent: numbers(sent, MICRO),
        delay: seconds(delay),
        first: seconds(first),
      };
    }
    if (packed.segments) found.segments = segmentsOf(packed.segments);
    connections.set(Number(number), found);
  }
  const { t = [], use = [], kbps = [], queue = [] } = data.links;
  return {
    connections,
    links: {
      t: numbers(t, MICRO),
      use: use.map((column) => summed(column, 1000)),
      kbps: kbps.map((column) => summed(column)),
      queue: queue.map((column) => summed(column)),
    },
    queues: data.queues ? { ...series(data.queues), links: data.queues.links } : null,
  };
}

const known = new WeakMap<Run, Promise<RunData>>();

/** A run's columns, which are unpacked when first asked for. */
export function dataOf(run: Run): Promise<RunData> {
  let found = known.get(run);
  if (!found) {
    found = unpacked(run.data);
    known.set(run, found);
  }
  return found;
}

/** The place of the last value that is not after `at`, in ascending order; -1 where all are. */
export function lastUpTo(values: ArrayLike<number>, at: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] as number) <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The last row up to `row` at which there is a value; -1 where there is none. */
export function lastKnown(values: Column, row: number): number {
  while (row >= 0 && (values[row] ?? null) === null) row -= 1;
  return row;
}

/** The first row from `row` on at which there is a value; the number of rows where there is none. */
export function firstKnown(values: Column, row: number): number {
  while (row < values.length && (values[row] ?? null) === null) row += 1;
  return row;
}
