// The bar below: playing through the run, and the moment.

import { useEffect, useRef, useState } from "preact/hooks";
import { instant } from "./format";
import { end, goTo, moment, shown, useValue, Value, zoom } from "./store";

export const playing = new Value(false);

/** Simulated seconds in a second. */
const SPEEDS = [0.001, 0.01, 0.1, 1, 10, 100, 1000];
/** The seconds that playing a whole run may take at the speed that is set at first. */
const PATIENCE = 20;

export function Scrubber() {
  const at = useValue(moment);
  const until = useValue(end);
  const runs = useValue(playing);
  const zoomed = useValue(zoom);
  const [chosen, setSpeed] = useState<number | null>(null);
  const speed = chosen ?? SPEEDS.find((each) => until / each <= PATIENCE) ?? Math.max(...SPEEDS);
  const pace = useRef(speed);
  pace.current = speed;
  const { min, max } = shown();
  const now = instant(at, max - min);

  useEffect(() => {
    if (!runs) return undefined;
    let last = performance.now();
    let frame = 0;
    if (moment.get() >= end.get()) moment.set(0);
    const step = (now: number) => {
      const next = moment.get() + ((now - last) / 1000) * pace.current;
      last = now;
      goTo(next);
      if (next >= end.get()) playing.set(false);
      else frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [runs]);

  return (
    <div class="scrubber" role="region" aria-label="Time">
      <button type="button" class="play" onClick={() => playing.set(!runs)} aria-label={runs ? "Pause" : "Play"}>
        <svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
          <path d={runs ? "M2 1h3.5v12H2zM8.5 1H12v12H8.5z" : "M2 1l11 6-11 6z"} />
        </svg>
      </button>
      <input
        type="range"
        min="0"
        max={until}
        step={until / 2000}
        value={at}
        aria-label="Moment"
        aria-valuetext={now}
        onInput={(event) => goTo(Number(event.currentTarget.value))}
      />
      <output class="at">{now}</output>
      <label class="speed">
        speed{" "}
        <select value={String(speed)} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
          {SPEEDS.map((each) => (
            <option value={String(each)} key={each}>
              {each >= 1 ? `${each} ×` : `1/${Math.round(1 / each)} ×`}
            </option>
          ))}
        </select>
      </label>
      <button type="button" disabled={zoomed === null} onClick={() => zoom.set(null)}>
        whole run
      </button>
    </div>
  );
}
