// What happened, each with a way to the moment.

import { useState } from "preact/hooks";
import type { Connection, Happened, Run } from "./data";
import { look } from "./store";

const ROWS = 200;
const AROUND = 0.03;

function about(run: Run, event: Happened): string {
  const connection = run.connections.findIndex((each) => each.id !== null && each.id === event.connection);
  const of: Connection | undefined = run.connections[connection];
  const lane = of?.subflows.find((each) => each.id === event.subflow);
  return [
    event.link === null ? "" : (run.network?.links[event.link]?.name ?? ""),
    run.summary.connections[connection]?.name ?? "",
    lane?.label ?? "",
  ]
    .filter((part) => part)
    .join(", ");
}

export function Events(props: { run: Run }) {
  const { run } = props;
  const kinds = [...new Set(run.events.map((each) => each.kind))].sort();
  const [kind, setKind] = useState("");
  const chosen = run.events.filter((each) => !kind || each.kind === kind);
  if (run.events.length === 0) return null;
  return (
    <details>
      <summary>Events: {run.events_of}</summary>
      <label>
        kind{" "}
        <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
          <option value="">all</option>
          {kinds.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <div class="wide" tabIndex={0} role="group" aria-label="Table">
        <table data-table="events">
          <thead>
            <tr>
              <th scope="col" class="number">s</th>
              <th scope="col">what</th>
              <th scope="col">host</th>
              <th scope="col">of</th>
              <th scope="col">detail</th>
            </tr>
          </thead>
          <tbody>
            {chosen.slice(0, ROWS).map((each, index) => (
              <tr key={index}>
                <td class="number">
                  <button type="button" class="plain" onClick={() => look(each.t, Math.max(AROUND * run.end_s, 0.02))}>
                    {each.t.toFixed(6)}
                  </button>
                </td>
                <td>{each.kind}</td>
                <td>{each.host}</td>
                <td>{about(run, each)}</td>
                <td>
                  {each.detail}
                  {each.value === null ? "" : ` ${each.value}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {chosen.length > ROWS && <p class="quiet">The first {ROWS} of {chosen.length} are shown.</p>}
      {run.events_of > run.events.length && <p class="quiet">The page has the first {run.events.length} of {run.events_of}.</p>}
    </details>
  );
}
