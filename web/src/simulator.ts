// The worker that has the simulator: one run at a time, in slices, so that a newer one takes its place.

interface Exports {
  memory: WebAssembly.Memory;
  input(length: number): number;
  output(): number;
  output_length(): number;
  begin(): number;
  step(until: number): number;
  now(): number;
  finish(): number;
}

/** What the page sends: first the compiled module, then plans. */
export type Order = { module: WebAssembly.Module } | { run: number; plan: string };
export type Report =
  | { run: number; now: number }
  | { run: number; text: string; took: number }
  | { run: number; failed: string };

const RUNNING = 0;
const FAILED = 2;
/** How long a slice should take, in milliseconds: the page waits that long for a newer run to begin. */
const SLICE = 40;
const LONGEST = 1e10;

const scope = self as unknown as { postMessage(report: Report): void; onmessage: ((event: MessageEvent<Order>) => void) | null };
let module: WebAssembly.Module | null = null;
let newest = 0;

/** Libraries import functions for randomness that no run calls: it draws from the plan's seed. */
function imports(of: WebAssembly.Module): WebAssembly.Imports {
  const found: Record<string, Record<string, () => never>> = {};
  for (const { module: from, name } of WebAssembly.Module.imports(of)) {
    (found[from] ??= {})[name] = () => {
      throw new Error(`the simulator asked for ${name}`);
    };
  }
  return found;
}

function said({ memory, output, output_length }: Exports): string {
  const [at, length] = [output(), output_length()];
  return new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
}

const breathe = () => new Promise<void>((done) => setTimeout(done));

async function simulate(run: number, plan: string): Promise<void> {
  if (!module) return;
  const begun = performance.now();
  const { exports } = await WebAssembly.instantiate(module, imports(module));
  const wasm = exports as unknown as Exports;
  const bytes = new TextEncoder().encode(plan);
  const at = wasm.input(bytes.length); // which may move the memory
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
  let answer = wasm.begin();
  let length = 1e7;
  while (answer === RUNNING) {
    const before = performance.now();
    answer = wasm.step(wasm.now() + length);
    const passed = performance.now() - before;
    if (passed < SLICE / 2) length = Math.min(2 * length, LONGEST);
    else if (passed > SLICE) length /= 2;
    if (answer !== RUNNING) break;
    scope.postMessage({ run, now: wasm.now() });
    await breathe();
    if (run !== newest) return;
  }
  if (answer !== FAILED) answer = wasm.finish();
  if (answer === FAILED) scope.postMessage({ run, failed: said(wasm) });
  else scope.postMessage({ run, text: said(wasm), took: (performance.now() - begun) / 1000 });
}

scope.onmessage = ({ data }) => {
  if ("module" in data) {
    module = data.module;
    return;
  }
  newest = data.run;
  simulate(data.run, data.plan).catch((reason: unknown) => {
    const memory = reason instanceof WebAssembly.RuntimeError || reason instanceof RangeError;
    scope.postMessage({ run: data.run, failed: memory ? `the run needs more than the page's 1 GiB of memory, or the simulator has a defect (${String(reason)})` : String(reason) });
  });
};
