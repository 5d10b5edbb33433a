// One run: its network, figures, what cost time, and everything over time.

import { useEffect, useMemo, useState } from "preact/hooks";
import { ceiling, usual } from "./ceiling";
import { Chart, type Line, type Mark } from "./chart";
import { ink, laneColour, pathColour } from "./colour";
import { dataOf, lastUpTo, type Column, type Connection, type Lab, type Network, type Run, type RunData, type Series } from "./data";
import { Events } from "./events";
import { instant, significant } from "./format";
import { Expectations } from "./expectations";
import { NetworkView, type Pick } from "./network";
import { SegmentList } from "./listing";
import { RequestViews } from "./requests";
import { Links, Results } from "./results";
import { SequenceChart } from "./sequence";
import { interval, smoothed } from "./smooth";
import { end, goTo, moment, zoom } from "./store";
import { Why } from "./why";

export function useData(run: Run): RunData | null {
  const [found, setFound] = useState<{ run: Run; data: RunData } | null>(null);
  useEffect(() => {
    let wanted = true;
    void dataOf(run).then((data) => {
      if (wanted) setFound({ run, data });
    });
    return () => {
      wanted = false;
    };
  }, [run]);
  return found?.run === run ? found.data : null;
}

function origin(run: Run): string {
  const length = instant(run.end_s, run.end_s);
  if (run.engine === "capture") return `capture of ${length}`;
  return `engine ${run.engine} · seed ${run.seed} · ${length}${run.engine === "live" ? "" : " simulated"}`;
}

export interface RunProps {
  labs: Lab[];
  run: Run;
  /** A run to compare with, which stays behind in the charts. */
  before?: Run | null;
  /** Called when a link or a node of the picture is clicked. */
  pick?: Pick;
}

export function RunView(props: RunProps) {
  const { labs, run, before = null, pick } = props;
  const data = useData(run);
  const past = useData(before ?? run);
  const lab = labs.find((each) => each.name === run.lab);
  const charted = run.connections.flatMap((each, number) => (each.charted ? [number] : []));
  const busiest = [...charted].sort(
    (a, b) => (run.summary.connections[b]?.bytes ?? 0) - (run.summary.connections[a]?.bytes ?? 0),
  )[0];
  const [chosen, setChosen] = useState<number | undefined>(undefined);
  const number = chosen !== undefined && charted.includes(chosen) ? chosen : busiest;
  const connection = number === undefined ? undefined : run.connections[number];
  const name = number === undefined ? "" : (run.summary.connections[number]?.name ?? "");

  useEffect(() => {
    end.set(run.end_s || 1);
    zoom.set(null);
    goTo(moment.get());
  }, [run]);

  return (
    <main data-ready={data ? "" : undefined}>
      <p class="facts">
        <b>{run.name}</b> · {origin(run)}
        {run.folder && (
          <>
            {" · "}
            <a href={run.folder}>folder</a>
          </>
        )}
      </p>
      {data && run.network && <NetworkView run={run} network={run.network} links={data.links} {...(pick ? { pick } : {})} />}
      <Results run={run} />
      {connection && <Why connection={connection} name={name} end={run.end_s} />}
      {lab && <Expectations lab={lab} />}
      {data && (
        <section aria-label="Over time">
          <h2>Over time</h2>
          <p class="quiet">
            Drag to zoom all charts, click to go to a moment, double-click for the whole run. Dashed, or ticks at
            the top: what the scenario changes.
          </p>
          {charted.length > 1 && (
            <label>
              connection{" "}
              <select value={String(number)} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
                {charted.map((each) => (
                  <option value={String(each)} key={each}>
                    {run.summary.connections[each]?.name}
                  </option>
                ))}
              </select>
            </label>
          )}
          {charted.length < run.connections.length && (
            <p class="quiet">
              {charted.length} of {run.connections.length} connections have charts: those with most bytes.
            </p>
          )}
          {number !== undefined && connection && (
            <Charts key={`${run.name}/${number}`} {...{ run, data, number, connection }} changes={run.marks} past={before ? past : null} />
          )}
        </section>
      )}
      <section aria-label="More">
        <h2>More</h2>
        <Links run={run} />
        <Events run={run} />
        <Provenance run={run} lab={lab} />
      </section>
    </main>
  );
}

interface Drawn {
  run: Run;
  data: RunData;
  number: number;
  connection: Connection;
  changes: Mark[];
  /** Of a run to compare with. */
  past: RunData | null;
}

function Charts({ run, data, number, connection, changes, past }: Drawn) {
  const own = data.connections.get(number) ?? {};
  const before = past?.connections.get(number)?.rate ?? null;
  const of = run.summary.connections[number];
  // A transfer is drawn as it was sampled. Requests would cut it into square waves.
  const width = own.rate && of && of.requests.count > 0 ? interval(of, own.rate) : 0;
  const rates = useMemo(() => own.rate && smoothed(own.rate, width), [own.rate, width]);
  const ghost = useMemo(() => before && smoothed(before, width), [before, width]);
  return (
    <>
      {rates && (
        <LaneChart
          name="rate"
          title="Goodput, and rate by path"
          unit="Mbps"
          of={rates}
          {...(rates === own.rate ? { step: -1 as const } : {})}
          first="goodput"
          named
          capped
          said={rates === own.rate ? "" : `means over ${significant(width, 3)} s`}
          {...{ connection, changes, ghost }}
        />
      )}
      {own.window && <LaneChart name="window" title="Congestion window" unit="packets" of={own.window} step={1} {...{ connection, changes }} />}
      {own.rtt && <LaneChart name="rtt" title="Smoothed RTT" unit="ms" of={own.rtt} {...{ connection, changes }} />}
      {data.queues && <QueueChart {...{ run, data, changes }} />}
      {own.reassembly && (
        <LaneChart
          name="reassembly"
          title="Waiting at the receiver"
          unit="kB"
          of={own.reassembly}
          step={1}
          first={`between ${connection.lane}s`}
          {...{ connection, changes }}
        />
      )}
      {own.sequence && <SequenceChart of={own.sequence} answers={own.answers} segments={own.segments} connection={connection} marks={changes} />}
      {own.segments && <SegmentList of={own.segments} connection={connection} />}
      {own.requests && <RequestViews of={own.requests} connection={connection} marks={changes} />}
    </>
  );
}

/** A chart with a line for each subflow, and before them, in the colour of text, one of the connection. */
function LaneChart(props: {
  name: string;
  title: string;
  unit: string;
  of: Series;
  step?: 1 | -1;
  first?: string;
  named?: boolean;
  /** Ends the axis above what arrived. */
  capped?: boolean;
  /** A further note. */
  said?: string;
  /** Its first column stays behind as a line. */
  ghost?: Series | null;
  connection: Connection;
  changes: Mark[];
}) {
  const { of, connection, first, step, capped, unit, ghost = null } = props;
  const lines = useMemo(() => {
    const stepped = step === undefined ? {} : { step };
    const offset = first === undefined ? 0 : 1;
    const found: Line[] = connection.subflows.map((lane, index) => ({
      label: lane.label,
      values: of.v[index + offset] ?? [],
      colour: () => laneColour(lane),
      ...(lane.shade ? { dash: [6, 3] } : {}),
      ...stepped,
    }));
    if (first !== undefined) {
      found.unshift({ label: first, values: of.v[0] ?? [], colour: () => ink("quiet"), fill: true, ...stepped });
    }
    if (ghost) {
      found.push({ label: "before", values: over(of.t, ghost), colour: () => ink("quiet"), dash: [2, 3], ...stepped });
    }
    return found.filter((line) => line.values.some((value) => value !== null));
  }, [of, connection, ghost]);
  const cap = useMemo(() => (capped ? ceiling(of.t, lines, usual(of), unit) : null), [of, lines]);
  return (
    <Chart
      name={props.name}
      title={props.title}
      unit={props.unit}
      times={of.t}
      lines={lines}
      marks={props.changes}
      note={[props.said, cap?.note, thinned(of)].filter((part) => part).join("; ")}
      named={props.named ?? false}
      {...(cap ? { range: cap.range, over: cap.draw } : {})}
    />
  );
}

function QueueChart({ run, data, changes }: { run: Run; data: RunData; changes: Mark[] }) {
  const { queues } = data;
  const lines = useMemo(() => {
    const found = queues?.links ?? [];
    const colours = linkColours(run.network, found.map(({ link }) => link));
    return found.map(({ link, direction }, index): Line => {
      const name = run.network?.links[link]?.name ?? "link";
      const back = direction === "backward";
      return {
        label: back ? `${name}, back` : name,
        values: queues?.v[index] ?? [],
        colour: () => pathColour(colours.get(link) ?? 0),
        step: 1,
        ...(back ? { dash: [6, 3] } : {}),
      };
    });
  }, [queues]);
  if (!queues) return null;
  return (
    <Chart name="queue" title="Queues of links" unit="packets" times={queues.t} lines={lines} marks={changes} note={thinned(queues)} />
  );
}

/** The number of each link's colour: that of its path, of others one that no path has. */
function linkColours(network: Network | null, links: number[]): Map<number, number> {
  const paths = network?.links.map((link) => link.path) ?? [];
  const found = new Map<number, number>();
  let next = 0;
  for (const link of links) {
    if (found.has(link)) continue;
    while (paths.includes(next)) next += 1;
    found.set(link, paths[link] ?? next++);
  }
  return found;
}

/** The first column of other times, at these; each of its values is of the time before. */
function over(times: number[], of: Series): Column {
  const column = of.v[0] ?? [];
  return times.map((time) => {
    const row = lastUpTo(of.t, time - 1e-9) + 1;
    return row < of.t.length ? (column[row] ?? null) : null;
  });
}

function thinned(of: Series): string {
  if (of.t.length >= of.of) return "";
  if (of.extremes === 0) return `means over ${significant(of.of / of.t.length, 2)} samples each`;
  const lines = of.extremes < of.v.length ? " of the first line" : "";
  return `${of.t.length} of ${of.of} samples, with the least and greatest of each stretch${lines}`;
}

function Provenance({ run, lab }: { run: Run; lab: Lab | undefined }) {
  return (
    <details>
      <summary>Where this comes from</summary>
      <dl>
        <dt>scenario</dt>
        <dd>{run.scenario}</dd>
        {lab && (
          <>
            <dt>lab</dt>
            <dd>{lab.title}</dd>
          </>
        )}
        <dt>plan</dt>
        <dd class="hash">{run.plan_sha256}</dd>
        <dt>recording</dt>
        <dd class="hash">{run.recording_sha256}</dd>
        {Object.entries(run.versions).map(([what, version]) => (
          <>
            <dt>{what}</dt>
            <dd>{version}</dd>
          </>
        ))}
      </dl>
    </details>
  );
}
