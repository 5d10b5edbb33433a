// What cost a connection time, the dearest first, each with a way to the moment.

import type { Connection } from "./data";
import { duration, instant } from "./format";
import { look } from "./store";

const MOST = 8;
/** What is shown of the time on both sides of a moment, as a part of the run. */
const AROUND = 0.04;

export function Why(props: { connection: Connection; name: string; end: number }) {
  const { causes } = props.connection;
  if (causes.length === 0) return null;
  const most = causes[0]?.time_s ?? 1;
  return (
    <section aria-label="Why was it not faster?" class="why">
      <h2>Why was it not faster?</h2>
      <p class="quiet">
        What cost <b>{props.name}</b> time. Several causes may hold at once: their times do not add up.
      </p>
      <ol>
        {causes.slice(0, MOST).map((cause, index) => (
          <li key={index}>
            <svg class="bar" width="100%" height="5" preserveAspectRatio="none" aria-hidden="true">
              <rect width={`${(100 * cause.time_s) / most}%`} height="5" />
            </svg>
            <span class="cost">{duration(cause.time_s)}</span> <span>{cause.sentence}</span>{" "}
            {cause.at_s !== null && (
              <button type="button" onClick={() => look(cause.at_s as number, Math.max(AROUND * props.end, 0.05))}>
                see {instant(cause.at_s, props.end)}
              </button>
            )}
          </li>
        ))}
      </ol>
      {causes.length > MOST && <p class="quiet">The {MOST} dearest of {causes.length} are shown.</p>}
    </section>
  );
}
