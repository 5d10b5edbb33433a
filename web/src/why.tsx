// Why a connection was not faster: its account, which adds up, or where there is none what cost it time.

import type { Account, Connection } from "./data";
import { duration, fixed, instant, percent } from "./format";
import { look } from "./store";

const MOST = 8;
/** What is shown of the time on both sides of a moment, as a part of the run. */
const AROUND = 0.04;
/** Charges of less than this part of the capacity are summed. */
const LEAST = 0.005;

export function Why(props: { connection: Connection; name: string; end: number }) {
  const { account, causes } = props.connection;
  if (account !== null && account.capacity_bytes > 0) return <Waterfall account={account} name={props.name} end={props.end} />;
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
            <Bar part={cause.time_s / most} />
            <span class="cost">{duration(cause.time_s)}</span> <span>{cause.sentence}</span>{" "}
            {cause.at_s !== null && <Look at={cause.at_s} end={props.end} />}
          </li>
        ))}
      </ol>
      {causes.length > MOST && <p class="quiet">The {MOST} dearest of {causes.length} are shown.</p>}
    </section>
  );
}

function Bar(props: { part: number; from?: number; kind?: string }) {
  return (
    <svg class={`bar ${props.kind ?? ""}`} width="100%" height="5" preserveAspectRatio="none" aria-hidden="true">
      <rect x={`${100 * (props.from ?? 0)}%`} width={`${100 * props.part}%`} height="5" />
    </svg>
  );
}

function Look(props: { at: number; end: number }) {
  return (
    <button type="button" onClick={() => look(props.at, Math.max(AROUND * props.end, 0.05))}>
      see {instant(props.at, props.end)}
    </button>
  );
}

/** From what the links could have carried down to what was delivered, each cause where the one before it ends. */
function Waterfall(props: { account: Account; name: string; end: number }) {
  const { capacity_bytes: capacity, delivered_bytes: delivered, charges, duration_s: time } = props.account;
  const shown = charges.filter((each) => each.bytes >= LEAST * capacity);
  const rest = charges.filter((each) => each.bytes < LEAST * capacity).reduce((sum, each) => sum + each.bytes, 0);
  let above = capacity;
  const rows = shown.map((charge) => {
    above -= charge.bytes;
    return { charge, from: Math.max(0, above / capacity) };
  });
  const cost = (bytes: number) => `${percent(bytes / capacity)} · ${megabits(bytes, time)}`;
  return (
    <section aria-label="Why was it not faster?" class="why">
      <h2>Why was it not faster?</h2>
      <p class="quiet">
        The links of <b>{props.name}</b> could have carried {megabytes(capacity)} in {duration(time)}. Each line is what one cause
        took of that; what is left was delivered.
      </p>
      <ol>
        {rows.map(({ charge, from }, index) => (
          <li key={index}>
            <Bar part={charge.bytes / capacity} from={from} />
            <span class="cost">{cost(charge.bytes)}</span> <span>{charge.sentence}.</span> <Look at={charge.at_s} end={props.end} />
          </li>
        ))}
        {rest !== 0 && (
          <li>
            <span class="cost">{cost(rest)}</span> Causes of less than {percent(LEAST)} each.
          </li>
        )}
        <li>
          <Bar part={delivered / capacity} kind="delivered" />
          <span class="cost">{cost(delivered)}</span> <b>Delivered.</b>
        </li>
      </ol>
    </section>
  );
}

function megabytes(bytes: number): string {
  return `${fixed(bytes / 1e6, 2)} MB`;
}

function megabits(bytes: number, time: number): string {
  return time > 0 ? `${fixed((bytes * 8) / time / 1e6, 2)} Mbps` : "";
}
