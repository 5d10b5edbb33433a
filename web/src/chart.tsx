// One chart over time. All charts show the same stretch of it and have the moment marked.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { ink } from "./colour";
import { firstKnown, lastKnown, lastUpTo, type Column } from "./data";
import { seconds, significant, tick, timeTick } from "./format";
import { end, goTo, moment, shown, theme, zoom, zoomTo } from "./store";

export interface Line {
  label: string;
  values: Column;
  colour: () => string;
  width?: number;
  dash?: number[];
  /** Whether a value holds for the time since the one before it (-1), or until the next (1). */
  step?: 1 | -1;
  fill?: boolean;
  points?: boolean;
}

export interface Mark {
  t: number;
  text: string;
}

export interface ChartProps {
  name: string;
  title: string;
  unit: string;
  times: ArrayLike<number>;
  lines: Line[];
  marks: Mark[];
  /** What is said below it, such as how much was left out. */
  note?: string;
  height?: number;
  /** Draws itself, in place of lines. */
  draw?: (plot: uPlot) => void;
  /** Draws above the lines. */
  over?: (plot: uPlot) => void;
  /** The range of the values between two times; left out: from 0 to the greatest. */
  range?: (min: number, max: number) => [number, number];
  /** What is said of the place under the pointer, in place of the lines' values. */
  tell?: (plot: uPlot, left: number, top: number) => string;
  /** The time to which a click at a place goes, if there is something there. */
  snap?: (plot: uPlot, left: number, top: number) => number | null;
  /** Names the marks at their tops. */
  named?: boolean;
  top?: number;
}

const SYNC = "time";
const HEIGHT = 190;
/** Pixels to the right of the last number on the axis of time. */
const HALF_A_NUMBER = 28;
/** Pixels that the pointer moves in a click at most. */
const STILL = 4;

export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | null>(null);
  const told = useRef<HTMLParagraphElement>(null);
  const given = useRef(props);
  given.current = props;
  const [hidden, setHidden] = useState<ReadonlySet<number>>(new Set());

  useEffect(() => {
    const target = place.current;
    if (!target) return undefined;
    const plot = new uPlot(options(given, told, target.clientWidth), aligned(props), target);
    drawn.current = plot;
    hidden.forEach((index) => plot.setSeries(index + 1, { show: false }));
    const head = document.createElement("div");
    head.className = "playhead";
    plot.over.append(head);
    const follow = () => {
      const left = plot.valToPos(moment.get(), "x");
      head.style.transform = `translateX(${left}px)`;
      head.hidden = left < 0 || left > plot.over.clientWidth;
    };
    const rezoom = () => {
      const { min, max } = shown();
      plot.setScale("x", { min, max });
      queueMicrotask(follow);
    };
    const resize = new ResizeObserver(() => {
      if (target.clientWidth > 0 && target.clientWidth !== plot.width) {
        plot.setSize({ width: target.clientWidth, height: plot.height });
        queueMicrotask(follow);
      }
    });
    resize.observe(target);
    rezoom();
    const stops = [
      moment.subscribe(follow),
      zoom.subscribe(rezoom),
      end.subscribe(rezoom),
      theme.subscribe(() => plot.redraw(false, true)),
      pointing(plot, given),
      () => resize.disconnect(),
    ];
    return () => {
      stops.forEach((stop) => stop());
      plot.destroy();
      drawn.current = null;
    };
  }, [props.times, props.lines]);

  const toggle = (index: number) => {
    const next = new Set(hidden);
    if (!next.delete(index)) next.add(index);
    setHidden(next);
    drawn.current?.setSeries(index + 1, { show: !next.has(index) });
  };

  return (
    <figure class="chart" data-chart={props.name} data-marks={props.marks.map((each) => each.text).join("; ")}>
      <figcaption>
        <h3>{props.title}</h3> <span class="unit">{props.unit}</span>
      </figcaption>
      {props.lines.length > 1 && <Legend lines={props.lines} hidden={hidden} toggle={toggle} />}
      <div class="plot" ref={place} />
      <p class="told" ref={told}>
        {props.note ?? ""}
      </p>
    </figure>
  );
}

function Legend(props: { lines: Line[]; hidden: ReadonlySet<number>; toggle: (index: number) => void }) {
  return (
    <div class="legend">
      {props.lines.map((line, index) => (
        <button type="button" aria-pressed={!props.hidden.has(index)} onClick={() => props.toggle(index)} key={index}>
          <Swatch colour={line.colour} dash={line.dash !== undefined} wide={(line.width ?? 0) > 2} />
          {line.label}
        </button>
      ))}
    </div>
  );
}

export function Swatch(props: { colour: () => string; dash?: boolean; wide?: boolean }) {
  return (
    <svg class="swatch" width="18" height="10" aria-hidden="true">
      <line
        x1="0"
        x2="18"
        y1="5"
        y2="5"
        stroke={props.colour()}
        stroke-width={props.wide ? 4 : 3}
        {...(props.dash ? { "stroke-dasharray": "4 3" } : {})}
      />
    </svg>
  );
}

function aligned(props: ChartProps): uPlot.AlignedData {
  return [props.times as number[], ...props.lines.map((line) => line.values)];
}

function options(
  given: { current: ChartProps },
  told: { current: HTMLParagraphElement | null },
  width: number,
): uPlot.Options {
  const props = given.current;
  const font = "12px system-ui, sans-serif";
  const axis: uPlot.Axis = {
    stroke: () => ink("quiet"),
    grid: { stroke: () => ink("grid"), width: 1 },
    ticks: { stroke: () => ink("grid"), width: 1, size: 4 },
    font,
  };
  return {
    width: Math.max(width, 50),
    height: props.height ?? HEIGHT,
    legend: { show: false },
    padding: [props.named ? 16 : 8, HALF_A_NUMBER, 0, 0],
    scales: {
      x: { time: false, range: (_, min, max) => [min, max] },
      y: {
        range: (plot, _, max) => {
          const { min: from, max: to } = plot.scales["x"] as uPlot.Scale;
          const own = given.current.range?.(from ?? 0, to ?? 0);
          if (own) return own;
          const most = given.current.top ?? max;
          return [0, most > 0 ? most * 1.06 : 1];
        },
      },
    },
    axes: [
      { ...axis, size: 26, space: 64, values: (_, ticks, _axis, _space, step) => ticks.map((value) => timeTick(value, step)) },
      { ...axis, size: widthOf, space: 30, values: (_, ticks, _axis, _space, step) => ticks.map((value) => tick(value, step)) },
    ],
    series: [
      {},
      ...props.lines.map((line) => ({
        label: line.label,
        stroke: line.colour,
        width: line.width ?? 1.6,
        spanGaps: true,
        points: { show: line.points ?? false, size: 6, fill: line.colour },
        ...(line.dash ? { dash: line.dash } : {}),
        ...(line.fill ? { fill: () => ink("fill") } : {}),
        ...(line.points ? { paths: () => null } : {}),
        ...(line.step && uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: line.step }) } : {}),
      })),
    ],
    cursor: {
      sync: { key: SYNC, setSeries: false },
      drag: { x: true, y: false, setScale: false, dist: STILL },
      points: { size: 6, show: props.draw === undefined },
      dataIdx: (_, series, closest, at) => {
        const line = props.lines[series - 1];
        return line ? rowAt(line, given.current.times, at) : closest;
      },
      bind: {
        dblclick: () => () => {
          zoom.set(null);
          return null;
        },
      },
    },
    hooks: {
      drawClear: [(plot) => mark(plot, given.current)],
      draw: [(plot) => given.current.draw?.(plot), (plot) => given.current.over?.(plot)],
      setSelect: [
        (plot) => {
          if (plot.select.width < STILL) return;
          const from = plot.posToVal(plot.select.left, "x");
          const to = plot.posToVal(plot.select.left + plot.select.width, "x");
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoomTo(from, to);
        },
      ],
      setCursor: [(plot) => tell(plot, given.current, told.current)],
    },
  };
}

/** An axis has the same width in all charts, unless its numbers need more. */
function widthOf(plot: uPlot, values: string[]): number {
  const longest = Math.max(0, ...(values ?? []).map((text) => plot.ctx.measureText(text).width / devicePixelRatio));
  return Math.max(58, Math.ceil(longest) + 14);
}

/** With more changes of links in view, each is a tick at the top, which hides no curve. */
const MOST_LINES = 24;
const TICK = 6;

/** Where links change: a line, and what happened. */
function mark(plot: uPlot, props: ChartProps): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ink("event");
  ctx.fillStyle = ink("event");
  ctx.lineWidth = ratio;
  ctx.setLineDash([4 * ratio, 3 * ratio]);
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left"; // uPlot leaves what its axes had
  ctx.textBaseline = "bottom";
  let free = -Infinity;
  const seen = props.marks
    .map(({ t, text }) => ({ x: Math.round(plot.valToPos(t, "x", true)), text }))
    .filter(({ x }) => x >= bbox.left - 1 && x <= bbox.left + bbox.width + 1);
  const ticks = seen.length > MOST_LINES;
  if (ticks) ctx.setLineDash([]);
  for (const { x, text } of seen) {
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + (ticks ? TICK * ratio : bbox.height));
    ctx.stroke();
    if (!props.named || ticks) continue;
    const width = ctx.measureText(text).width;
    const left = Math.max(bbox.left, Math.min(x - width / 2, bbox.left + bbox.width - width));
    if (left < free) continue;
    ctx.fillText(text, left, bbox.top - 2 * ratio);
    free = left + width + 8 * ratio;
  }
  ctx.restore();
}

/** The values at the pointer, below the chart. */
function tell(plot: uPlot, props: ChartProps, target: HTMLParagraphElement | null): void {
  if (!target) return;
  const { left = -1, top = -1 } = plot.cursor;
  if (left < 0) {
    target.textContent = props.note ?? "";
    return;
  }
  if (props.tell) {
    target.textContent = props.tell(plot, left, top);
    return;
  }
  const at = plot.posToVal(left, "x");
  const span = shown();
  const parts = props.lines.flatMap((line) => {
    const row = rowAt(line, props.times, at);
    return row === null ? [] : [`${line.label} ${significant(line.values[row] as number, 4)}`];
  });
  const single = props.lines.find((line) => line.points);
  const row = single ? rowAt(single, props.times, at) : null;
  const time = seconds(row === null ? at : (props.times[row] as number), (span.max - span.min) / 1000);
  target.textContent = [time, parts.join(" · ")].filter((part) => part).join(": ");
}

/** The row whose value a line has at a time, as it is drawn: of a step the one that holds, otherwise the nearer one; null where
 * it has none. */
export function rowAt(line: Line, times: ArrayLike<number>, at: number): number | null {
  const last = lastUpTo(times, at);
  const before = lastKnown(line.values, last);
  const after = times[before] === at ? before : firstKnown(line.values, last + 1);
  const [isBefore, isAfter] = [before >= 0, after < line.values.length];
  if (!(isBefore && isAfter) && !line.points) return null;
  if (line.step) return line.step === 1 ? before : after;
  if (!isBefore || !isAfter) return isBefore ? before : isAfter ? after : null;
  return at - (times[before] as number) <= (times[after] as number) - at ? before : after;
}

/** A click goes to the moment under it; the wheel with Control zooms. */
function pointing(plot: uPlot, given: { current: ChartProps }): () => void {
  let from = 0;
  const press = (event: MouseEvent) => (from = event.clientX);
  const click = (event: MouseEvent) => {
    if (Math.abs(event.clientX - from) >= STILL) return;
    const around = plot.over.getBoundingClientRect();
    const [left, top] = [event.clientX - around.left, event.clientY - around.top];
    goTo(given.current.snap?.(plot, left, top) ?? plot.posToVal(left, "x"));
  };
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const { min, max } = shown();
    const at = plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x");
    const factor = event.deltaY < 0 ? 0.7 : 1 / 0.7;
    zoomTo(at - (at - min) * factor, at + (max - at) * factor);
  };
  plot.over.addEventListener("mousedown", press);
  plot.over.addEventListener("click", click);
  plot.over.addEventListener("wheel", wheel, { passive: false });
  return () => {
    plot.over.removeEventListener("mousedown", press);
    plot.over.removeEventListener("click", click);
    plot.over.removeEventListener("wheel", wheel);
  };
}
