// The simulator as the page has it: plans in, runs out.

import type { Connection, Happened, PackedData, Summary } from "./data";
import { unpacked } from "./packed";
import type { Order, Report } from "./simulator";

/** What a run left. */
export interface Shown {
  end_s: number;
  recording_sha256: string;
  summary: Summary;
  connections: Omit<Connection, "notes" | "causes">[];
  events: Happened[];
  events_of: number;
  data: PackedData;
  paths: string[];
}

export type Heard =
  | { kind: "progress"; now_s: number }
  | { kind: "done"; shown: Shown; took_s: number }
  | { kind: "failed"; reason: string };

/** Runs plans in a worker; a newer one ends the one before. */
export class Lab {
  private readonly worker: Worker;
  private readonly ready: Promise<void>;
  private number = 0;
  private heard: (what: Heard) => void = () => {};

  constructor() {
    const program = document.getElementById("worker")?.textContent ?? "";
    this.worker = new Worker(URL.createObjectURL(new Blob([program], { type: "text/javascript" })));
    this.worker.onmessage = (event: MessageEvent<Report>) => this.take(event.data);
    this.worker.onerror = (event) => this.heard({ kind: "failed", reason: event.message });
    this.ready = unpacked("simulator")
      .then((bytes) => WebAssembly.compile(bytes))
      .then((module) => this.send({ module }));
  }

  run(plan: string, heard: (what: Heard) => void): void {
    const run = ++this.number;
    this.heard = heard;
    this.ready.then(
      () => {
        if (run === this.number) this.send({ run, plan });
      },
      (reason: unknown) => heard({ kind: "failed", reason: String(reason) }),
    );
  }

  /** What runs is dropped. */
  stop(): void {
    this.run("", () => {});
  }

  private send(order: Order): void {
    this.worker.postMessage(order);
  }

  private take(report: Report): void {
    if (report.run !== this.number) return;
    if ("now" in report) this.heard({ kind: "progress", now_s: report.now / 1e9 });
    else if ("failed" in report) this.heard({ kind: "failed", reason: report.failed });
    else this.heard({ kind: "done", shown: JSON.parse(report.text) as Shown, took_s: report.took });
  }
}
