// The network at a moment: links coloured by use, with what waits in their queues.

import { ink, useColour } from "./colour";
import { lastUpTo, type Channel, type Direction, type Link, type LinkData, type Network, type Run } from "./data";
import { instant, percent, rate, significant } from "./format";
import { moment, narrow, theme, useValue } from "./store";

const COLUMN = 300;
const ROW = 190;
const MARGIN = 70;
/** In a narrow window: the width that a picture has, its margin, and the least distance of two nodes. */
const NARROW = { width: 368, margin: 52, column: 118 };
const BEND = 56;
/** Half the distance of a link's two directions. */
const APART = 4;
/** With more links, they have no names in the picture, and no row in the table unless they carry something. */
const NAMED = 24;
const ROWS = 16;
const QUEUE = { width: 7, height: 26 };
/** From a link to the nearer line of its name. */
const CLEAR = 12;
const LINE = 13;
/** Half of a usual name's width, which a link that rises must not cross. */
const NAME = 45;

/** What one direction of a link does at a moment. */
export interface State {
  up: boolean;
  use: number | null;
  kbps: number;
  queue: number;
}

export function stateAt(run: Run, links: LinkData, link: number, direction: Direction, at: number): State {
  const row = Math.min(lastUpTo(links.t, at - 1e-9) + 1, links.t.length - 1);
  const column = 2 * link + (direction === "forward" ? 0 : 1);
  let up = run.network?.links[link]?.[direction].up ?? true;
  for (const change of run.changes) {
    if (change.t > at) break;
    if (change.link === link && (change.direction === "both" || change.direction === direction)) up = change.up;
  }
  return {
    up,
    use: links.use[column]?.[row] ?? null,
    kbps: links.kbps[column]?.[row] ?? 0,
    queue: links.queue[column]?.[row] ?? 0,
  };
}

/** What was clicked: a link or a node, by its number. */
export type Pick = (what: "link" | "node", number: number) => void;

export function NetworkView(props: { run: Run; network: Network; links: LinkData; pick?: Pick }) {
  const at = useValue(moment);
  useValue(theme);
  const { run, network, links, pick } = props;
  const slim = useValue(narrow);
  const layout = layoutOf(network, slim);
  const box = boxOf(network, layout);
  const named = network.links.length <= NAMED;
  return (
    <section class="network" aria-label="Network">
      <h2>Network</h2>
      <div class="network-parts">
        <div class="network-picture" tabIndex={0} role="group" aria-label="Picture of the network">
          <svg
            viewBox={`${box.left} ${box.top} ${box.width} ${box.height}`}
            role="img"
            aria-label={`The network: ${network.nodes.length} nodes, ${network.links.length} links`}
            {...(slim && !network.large ? { style: `min-width: ${Math.min(box.width, 2 * NARROW.width)}px` } : {})}
          >
            {network.links.map((link, index) => (
              <g key={index} {...clicked(pick, "link", index)}>
                <LinkPicture {...{ run, network, links, link, index, at, named, layout }} />
              </g>
            ))}
            {network.nodes.map((node, index) => {
              const { x, y } = place(node, layout);
              return (
                <g key={index} transform={`translate(${x} ${y})`} class="node" {...clicked(pick, "node", index)}>
                  <NodeShape kind={node.kind} />
                  {network.large ? (
                    <title>{node.name}</title>
                  ) : (
                    <text y="28" text-anchor="middle">
                      {node.name}
                    </text>
                  )}
                </g>
              );
            })}
          </svg>
          <Scale queues={!network.large} />
        </div>
        <LinkTable {...{ run, network, links, at }} />
      </div>
    </section>
  );
}

function clicked(pick: Pick | undefined, what: "link" | "node", number: number) {
  return pick ? { onClick: () => pick(what, number), style: "cursor: pointer" } : {};
}

function Scale(props: { queues: boolean }) {
  const parts = [0, 0.25, 0.5, 0.75, 1];
  return (
    <p class="scale">
      use of a link{" "}
      {parts.map((part) => (
        <span key={part}>
          <svg width="22" height="10" aria-hidden="true">
            <line x1="0" x2="22" y1="5" y2="5" stroke={useColour(part)} stroke-width={width(part)} />
          </svg>{" "}
          {percent(part, 0)}{" "}
        </span>
      ))}
      {props.queues && "· bar: queue of the direction that begins there"}
    </p>
  );
}

interface Layout {
  column: number;
  margin: number;
  /** Whether what is said of a link stands in several lines. */
  slim: boolean;
}

function layoutOf(network: Network, slim: boolean): Layout {
  if (!slim || network.large) return { column: COLUMN, margin: MARGIN, slim: false };
  const xs = network.nodes.map((each) => each.x);
  const columns = Math.max(...xs) - Math.min(...xs);
  const { width, margin, column } = NARROW;
  return { column: Math.min(COLUMN, Math.max(column, (width - 2 * margin) / Math.max(columns, 1))), margin, slim };
}

function place(node: { x: number; y: number }, { column }: Layout): { x: number; y: number } {
  return { x: node.x * column, y: -node.y * ROW };
}

function boxOf(network: Network, layout: Layout) {
  const places = network.nodes.map((each) => place(each, layout));
  const bends = network.links.map((link) => Math.abs(link.bend) * BEND);
  const room = Math.max(0, ...bends) + LINE * Math.max(0, ...network.links.map((link) => told(link, layout).length - 1));
  const xs = places.map((each) => each.x);
  const ys = places.map((each) => each.y);
  const left = Math.min(...xs) - layout.margin;
  const top = Math.min(...ys) - Math.max(MARGIN - 20, room + 40);
  return {
    left,
    top,
    width: Math.max(...xs) + layout.margin - left,
    height: Math.max(...ys) + Math.max(MARGIN - 20, room + 40) - top,
  };
}

function NodeShape(props: { kind: string }) {
  if (props.kind === "host") return <rect x="-13" y="-13" width="26" height="26" rx="3" class="host" />;
  if (props.kind === "switch") return <rect x="-11" y="-11" width="22" height="22" transform="rotate(45)" class="switch" />;
  return <circle r="13" class="router" />;
}

function width(use: number): number {
  return 2.5 + 4 * use;
}

interface OneLink {
  run: Run;
  network: Network;
  links: LinkData;
  link: Link;
  index: number;
  at: number;
  named: boolean;
  layout: Layout;
}

function LinkPicture({ run, network, links, link, index, at, named, layout }: OneLink) {
  const nodes = [network.nodes[link.a], network.nodes[link.b]];
  if (!nodes[0] || !nodes[1]) return null;
  const a = place(nodes[0], layout);
  const b = place(nodes[1], layout);
  // Parallel links bend apart, each to the same side whichever end comes first.
  const turned = a.x > b.x || (a.x === b.x && a.y > b.y);
  const [from, to] = turned ? [b, a] : [a, b];
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const across = { x: (to.y - from.y) / length, y: -(to.x - from.x) / length };
  const off = (amount: number) => ({ x: across.x * amount, y: across.y * amount });
  const bend = link.bend * BEND;
  const middle = { x: (from.x + to.x) / 2 + off(bend).x, y: (from.y + to.y) / 2 + off(bend).y };
  const below = off(bend).y > 0;
  const said = told(link, layout);
  const slope = Math.abs(to.y - from.y) / Math.max(Math.abs(to.x - from.x), 1);
  const clear = CLEAR + Math.min(slope * NAME, 2 * LINE);
  return (
    <g class="link">
      {(["forward", "backward"] as const).map((direction) => {
        const state = stateAt(run, links, index, direction, at);
        const side = (direction === "forward") !== turned ? APART : -APART;
        const shift = off(side);
        const control = {
          x: (from.x + to.x) / 2 + off(2 * bend).x + shift.x,
          y: (from.y + to.y) / 2 + off(2 * bend).y + shift.y,
        };
        const curve = `M${from.x + shift.x} ${from.y + shift.y}Q${control.x} ${control.y} ${to.x + shift.x} ${to.y + shift.y}`;
        const use = state.use ?? 0;
        const start = (direction === "forward") !== turned ? 0.2 : 0.8;
        const spot = at2(from, control, to, start, shift);
        return (
          <g key={direction} data-link={link.name} data-direction={direction} data-use={use.toFixed(3)}>
            <path
              d={curve}
              fill="none"
              stroke={state.up ? (state.use === null && state.kbps > 0 ? ink("quiet") : useColour(use)) : ink("bad")}
              stroke-width={state.up ? width(use) : 2}
              {...(state.up ? {} : { "stroke-dasharray": "3 5" })}
            />
            {!network.large && (
              <QueueBar channel={link[direction]} queue={state.queue} x={spot.x} y={spot.y} side={side} />
            )}
          </g>
        );
      })}
      {named && (
        <text x={middle.x} y={middle.y + (below ? clear + 6 : -clear - LINE * said.length)} text-anchor="middle" class="name">
          <tspan x={middle.x}>{link.name}</tspan>
          {said.map((line) => (
            <tspan key={line} x={middle.x} dy={LINE} class="quiet">
              {line}
            </tspan>
          ))}
        </text>
      )}
    </g>
  );
}

interface Xy {
  x: number;
  y: number;
}

function at2(from: Xy, control: Xy, to: Xy, part: number, shift: Xy): Xy {
  const rest = 1 - part;
  const mix = (a: number, b: number, c: number) => rest * rest * a + 2 * rest * part * b + part * part * c;
  return {
    x: mix(from.x + shift.x, control.x, to.x + shift.x),
    y: mix(from.y + shift.y, control.y, to.y + shift.y),
  };
}

function QueueBar(props: { channel: Channel; queue: number; x: number; y: number; side: number }) {
  const most = props.channel.queue_packets;
  if (!most) return null;
  const part = Math.min(props.queue / most, 1);
  const top = props.side > 0 ? props.y - QUEUE.height - 6 : props.y + 6;
  return (
    <g class="queue">
      <rect x={props.x - QUEUE.width / 2} y={top} width={QUEUE.width} height={QUEUE.height} class="queue-room" />
      <rect
        x={props.x - QUEUE.width / 2}
        y={top + QUEUE.height * (1 - part)}
        width={QUEUE.width}
        height={QUEUE.height * part}
        fill={useColour(0.4 + 0.6 * part)}
      />
    </g>
  );
}

/** What stands below a link's name. */
function told(link: Link, { slim }: Layout): string[] {
  return slim ? describe(link).flatMap((line) => line.split(", ")) : describe(link);
}

/** One line for both directions where they are alike. */
function describe(link: Link): string[] {
  const [forth, back] = [parts(link.forward), parts(link.backward)];
  if (forth === back) return forth ? [forth] : [];
  return [...(forth ? [back ? forth : `forth: ${forth}`] : []), ...(back ? [`back: ${back}`] : [])];
}

function parts(channel: Channel): string {
  const most = rate(channel.rate_bps);
  const found = [channel.trace ? `${channel.trace} (mean ${most})` : channel.wifi ? `Wi-Fi up to ${most}` : most];
  if (channel.delay_ns) found.push(`${channel.delay_ns / 1e6} ms`);
  if (channel.loss) found.push(`${significant(channel.loss * 100, 6)} % loss`);
  return found.filter((part) => part).join(", ");
}

function LinkTable(props: { run: Run; network: Network; links: LinkData; at: number }) {
  const { run, network, links, at } = props;
  const rows = network.links.flatMap((link, index) =>
    (["forward", "backward"] as const).map((direction) => ({
      link,
      direction,
      index,
      carried: (links.kbps[2 * index + (direction === "forward" ? 0 : 1)] ?? []).some((value) => (value ?? 0) > 0),
    })),
  );
  const carrying = rows.filter((row) => row.carried && row.link[row.direction].rate_bps !== null);
  const all = carrying.length > 0 ? carrying : rows.filter((row) => row.carried);
  const chosen = all.slice(0, ROWS);
  const ends = (link: Link, direction: Direction) => {
    const [a, b] = [network.nodes[link.a]?.name, network.nodes[link.b]?.name];
    return direction === "forward" ? `${a} → ${b}` : `${b} → ${a}`;
  };
  if (chosen.length === 0) return null;
  return (
    <table class="now">
      <caption>
        At <output>{instant(at, run.end_s)}</output>{all.length > ROWS ? `; the first ${ROWS} of ${all.length} directions` : ""}
      </caption>
      <thead>
        <tr>
          <th scope="col">link</th>
          <th scope="col" class="number">
            Mbps
          </th>
          <th scope="col" class="number">
            use
          </th>
          <th scope="col" class="number">
            queue
          </th>
        </tr>
      </thead>
      <tbody>
        {chosen.map(({ link, direction, index }) => {
          const state = stateAt(run, links, index, direction, at);
          const most = link[direction].queue_packets;
          return (
            <tr key={`${index}${direction}`}>
              <th scope="row">
                {link.name} <span class="quiet">{ends(link, direction)}</span>
              </th>
              <td class="number">{state.up ? (state.kbps / 1000).toFixed(2) : "down"}</td>
              <td class="number">{state.use === null ? "" : percent(state.use, 0)}</td>
              <td class="number">
                {state.queue}
                {most ? <span class="quiet">/{most}</span> : null}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

