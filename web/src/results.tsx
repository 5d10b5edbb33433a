// The figures of a run: the table that the terminal prints, and what its links came to.

import { laneColour } from "./colour";
import { Swatch } from "./chart";
import type { ConnectionSummary, Run, SubflowSummary, Table } from "./data";
import { amount, fixed, goodput, instant, mbps, percent, took } from "./format";
import { theme, useValue } from "./store";
import { useState } from "preact/hooks";

/** With more rows, the rest is shown when asked for. */
const ROWS = 40;
/** Directions of links that have a row. */
const LINKS = 400;

export function Results(props: { run: Run }) {
  useValue(theme);
  const { run } = props;
  const [all, setAll] = useState(false);
  const connections = run.summary.connections;
  const notes = run.connections.flatMap((each) => each.notes);
  const rows = connections.flatMap((each, number) => [
    <ConnectionRow key={number} of={each} />,
    ...each.subflows.map((subflow, place) => (
      <SubflowRow key={`${number}.${place}`} run={run} number={number} of={subflow} whole={each} />
    )),
  ]);
  return (
    <section aria-label="Results">
      <h2>Results</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Table">
        <table class="results stacked" data-table="results">
          <thead>
            <tr>
              <th scope="col">connection</th>
              <th scope="col">transport</th>
              <th scope="col" class="number">Mbps</th>
              <th scope="col" class="number">share</th>
              <th scope="col" class="number">RTT ms</th>
              <th scope="col" class="number">resent</th>
              <th scope="col" class="number">reinjected</th>
              <th scope="col" class="number">time</th>
            </tr>
          </thead>
          <tbody>{all ? rows : rows.slice(0, ROWS)}</tbody>
        </table>
      </div>
      {(all ? notes : notes.slice(0, ROWS)).map((note, number) => (
        <p key={number} class="words">
          {note}
        </p>
      ))}
      {Math.max(rows.length, notes.length) > ROWS && !all && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {rows.length} rows{notes.length > ROWS ? ` and ${notes.length} notes` : ""}
        </button>
      )}
      {run.further.map((each, number) => (
        <Further key={number} of={each} />
      ))}
      {run.interrupted && <p class="warning">Interrupted at {instant(run.end_s, run.end_s)}{run.engine === "live" ? "" : " of simulated time"}.</p>}
    </section>
  );
}

function ConnectionRow(props: { of: ConnectionSummary }) {
  const { of } = props;
  return (
    <tr class="connection">
      <th scope="row">{of.name}</th>
      <td>{of.transport}</td>
      <td class="number" data-what="Mbps">{goodput(of)}</td>
      <td />
      <td />
      <td />
      <td />
      <td class="number" data-what="time">{took(of.completion_s)}</td>
    </tr>
  );
}

function SubflowRow(props: { run: Run; number: number; of: SubflowSummary; whole: ConnectionSummary }) {
  const { of } = props;
  const connection = props.run.connections[props.number];
  const lane = connection?.subflows.find((each) => each.id === of.id);
  const notes = [of.backup ? ", backup" : "", of.established_s === null ? ", not established" : ""].join("");
  return (
    <tr>
      <th scope="row" class="subflow">
        {lane && <Swatch colour={() => laneColour(lane)} />} {of.source} → {of.destination}
        {notes}
      </th>
      <td>{of.interface}</td>
      <td class="number" data-what="Mbps">{mbps(of.goodput_mbps)}</td>
      <td class="number" data-what="share">{of.share === null ? "" : percent(of.share)}</td>
      <td class="number" data-what="RTT ms">{typeof of.srtt_ms?.mean === "number" ? fixed(of.srtt_ms.mean, 1) : ""}</td>
      <td class="number" data-what="resent">{of.resent === null ? "" : percent(of.resent, 2)}</td>
      <td class="number" data-what="reinjected">{of.reinjected_bytes === null ? "" : amount(of.reinjected_bytes)}</td>
      <td />
    </tr>
  );
}

function Further({ of }: { of: Table }) {
  const [all, setAll] = useState(false);
  const kind = (column: number) => (column < of.words ? undefined : "number");
  return (
    <>
      <div class="wide" tabIndex={0} role="group" aria-label="Table">
        <table class="stacked" data-table="further">
          <thead>
            <tr>
              {of.headings.map((heading, column) => (
                <th scope="col" key={column} class={kind(column)}>
                  {heading}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {(all ? of.rows : of.rows.slice(0, ROWS)).map((row, number) => (
              <tr key={number}>
                {row.map((cell, column) =>
                  column === 0 ? (
                    <th scope="row" key={column}>
                      {cell}
                    </th>
                  ) : (
                    <td key={column} class={kind(column)} data-what={of.headings[column]}>
                      {cell}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {of.rows.length > ROWS && !all && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {of.rows.length} rows
        </button>
      )}
      {of.note && <p class="words">{of.note}</p>}
    </>
  );
}

export function Links(props: { run: Run }) {
  const rows = props.run.summary.links.filter((each) => each.utilisation > 0 || each.dropped_packets > 0 || each.max_queue_packets > 0);
  if (rows.length === 0) return null;
  return (
    <details>
      <summary>Links: use, drops, longest queue</summary>
      <div class="wide" tabIndex={0} role="group" aria-label="Table">
        <table class="stacked" data-table="links">
          <thead>
            <tr>
              <th scope="col">link</th>
              <th scope="col">direction</th>
              <th scope="col" class="number">use</th>
              <th scope="col" class="number">dropped</th>
              <th scope="col" class="number">longest queue</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, LINKS).map((each, number) => (
              <tr key={number}>
                <th scope="row">{each.name}</th>
                <td>{each.direction}</td>
                <td class="number" data-what="use">{percent(each.utilisation)}</td>
                <td class="number" data-what="dropped">{each.dropped_packets}</td>
                <td class="number" data-what="longest queue">{each.max_queue_packets}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > LINKS && <p class="quiet">The first {LINKS} of {rows.length} directions are shown.</p>}
    </details>
  );
}
