// The segments around the moment, one by one, with their options.

import { useMemo, useState } from "preact/hooks";
import { Swatch } from "./chart";
import { laneColour } from "./colour";
import { lastUpTo, type Connection } from "./data";
import { seconds } from "./format";
import { KINDS, SIDES, type Segments } from "./segments";
import { goTo, moment, theme, useValue } from "./store";

const BEFORE = 6;
const ROWS = 14;
/** The moment is as exact as its slider. */
const SLACK = 1e-9;

/** Which segments are there, where not all are. */
function left([special, others]: readonly [number, number]): string {
  return `${special > 1 ? `of those with something special one of ${special}, ` : ""}of those without anything special one of ${others}`;
}

export function SegmentList(props: { of: Segments; connection: Connection }) {
  const { of, connection } = props;
  const at = useValue(moment);
  useValue(theme);
  const [chosen, setChosen] = useState("");
  const lanes = useMemo(() => new Map(connection.subflows.map((lane) => [lane.id, lane])), [connection]);
  const rows = useMemo(() => {
    if (chosen === "") return of.order;
    return of.order.filter((row) => (chosen === "special" ? of.special(row) : of.lane[row] === Number(chosen)));
  }, [of, chosen]);
  const times = useMemo(() => Float64Array.from(rows, (row) => of.t[row] as number), [of, rows]);
  const current = Math.max(0, lastUpTo(times, at + SLACK));
  const from = Math.max(0, Math.min(current - BEFORE, rows.length - ROWS));
  const isPath = connection.lane === "path";
  const what = isPath ? "packet" : "segment";
  const step = (by: number) => {
    // Those of one instant are passed together.
    const now = times[current] ?? 0;
    const next = by > 0 ? times[lastUpTo(times, now) + 1] : times[lastUpTo(times, now - SLACK / 2)];
    if (next !== undefined) goTo(next);
  };
  return (
    <section aria-label={`Single ${what}s`} class="single">
      <h3>Single {what}s</h3>
      <p>
        <label>
          of{" "}
          <select value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
            <option value="">all</option>
            <option value="special">{isPath ? "other frames than STREAM and ACK" : "other options than timestamps and DSS, or sent again"}</option>
            {[...lanes.values()].map((lane) => (
              <option value={String(lane.id)} key={lane.id}>
                {lane.label}
              </option>
            ))}
          </select>
        </label>{" "}
        <button type="button" onClick={() => step(-1)}>
          earlier
        </button>{" "}
        <button type="button" onClick={() => step(1)}>
          later
        </button>
      </p>
      <div class="wide" tabIndex={0} role="group" aria-label={`Single ${what}s around the moment`}>
        <table data-table="segments">
          <thead>
            <tr>
              <th scope="col" class="number">s</th>
              <th scope="col">from</th>
              <th scope="col">on</th>
              <th scope="col">{isPath ? "type" : "flags"}</th>
              <th scope="col" class="number">{isPath ? "number" : "seq"}</th>
              <th scope="col" class="number">ack</th>
              <th scope="col" class="number">bytes</th>
              <th scope="col">sent</th>
              <th scope="col">{isPath ? "frames" : "options"}</th>
            </tr>
          </thead>
          <tbody>
            {[...rows.subarray(from, from + ROWS)].map((row, place) => {
              const lane = lanes.get(of.lane[row] ?? -1);
              const kind = KINDS[of.kind[row] ?? 0];
              const acks = /\bACK|_ACK/.test(isPath ? of.said(row) : of.flags(row));
              return (
                <tr key={row} aria-current={from + place === current ? "true" : undefined}>
                  <td class="number">
                    <button type="button" class="plain" onClick={() => goTo(of.t[row] as number)}>
                      {seconds(of.t[row] as number, 1e-6).replace(" s", "")}
                    </button>
                  </td>
                  <td>{SIDES[of.side[row] ?? 0]}</td>
                  <td class="lane">
                    {lane && <Swatch colour={() => laneColour(lane)} />} {lane?.label ?? ""}
                  </td>
                  <td class="flags">{of.flags(row)}</td>
                  <td class="number" data-what={isPath ? "number" : "seq"}>
                    {of.seq[row]}
                  </td>
                  <td class="number" data-what={acks ? "ack" : undefined}>
                    {acks ? of.ack[row] : ""}
                  </td>
                  <td class="number" data-what={of.length[row] ? "bytes" : undefined}>
                    {of.length[row] || ""}
                  </td>
                  <td>{kind === "retransmission" || kind === "reinjection" ? kind : ""}</td>
                  <td class="said">{of.said(row)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="quiet">
        Around the moment{isPath ? ", by number; ack is the highest that was acknowledged" : ", with relative numbers; those of DSS are offsets in the stream"}. {of.of} {what}s in all
        {of.order.length < of.of ? `, ${of.order.length} on this page: ${left(of.every)}` : ""}.
      </p>
    </section>
  );
}
