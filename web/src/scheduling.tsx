// The events that are added to a run, as rows to fill in.

import { Typed } from "./knob";
import type { EventKinds, Scheduled } from "./schedule";

interface Props {
  kinds: EventKinds;
  links: string[];
  /** Seconds that the run may take, and that it took. */
  end: number;
  ran: number;
  schedule: Scheduled[];
  set: (schedule: Scheduled[]) => void;
}

/** Events that are added to the run's own. */
export function Schedule({ kinds, links, end, ran, schedule, set }: Props) {
  const change = (index: number, part: Partial<Scheduled>) => set(schedule.map((event, at) => (at === index ? { ...event, ...part } : event)));
  const of = (name: string) => kinds.kinds.find((kind) => kind.name === name);
  const suiting = (link: string) => kinds.kinds.filter((kind) => kind.links.includes(link));
  /** An event of a link, of the kind that it had if that suits. */
  const moved = (event: Scheduled, link: string): Partial<Scheduled> => {
    const kind = suiting(link).find(({ name }) => name === event.kind) ?? suiting(link)[0];
    return kind?.name === event.kind ? { link } : { link, kind: kind?.name ?? "", value: kind?.value ?? null };
  };
  return (
    <fieldset id="group-events" class="events">
      <legend>events</legend>
      {schedule.map((event, index) => {
        const kind = of(event.kind);
        return (
          <p key={index}>
            <label>
              at{" "}
              <Typed min={0} max={end} value={event.at_s} data-event="at" take={(at_s) => change(index, { at_s })} />{" "}
              s
            </label>{" "}
            <select aria-label="link" value={event.link} data-event="link" onChange={(input) => change(index, moved(event, input.currentTarget.value))}>
              {links.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>{" "}
            <select
              aria-label="what happens"
              value={event.kind}
              data-event="kind"
              onChange={(input) => change(index, { kind: input.currentTarget.value, value: of(input.currentTarget.value)?.value ?? null })}
            >
              {suiting(event.link).map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>{" "}
            {kind?.unit && (
              <label>
                <Typed
                  min={0}
                  max={kind.most ?? 0}
                  value={event.value}
                  data-event="value"
                  aria-label={`${kind.name} in ${kind.unit}`}
                  take={(value) => change(index, { value })}
                />{" "}
                {kind.unit}
              </label>
            )}{" "}
            <button type="button" onClick={() => set(schedule.filter((_, at) => at !== index))} aria-label={`Remove event ${index + 1}`}>
              Remove
            </button>
          </p>
        );
      })}
      <button
        type="button"
        data-event="add"
        onClick={() => {
          const link = links[links.length > 1 ? 1 : 0] ?? "";
          const kind = suiting(link)[0];
          if (kind) set([...schedule, { at_s: ran >= 4 ? Math.round(ran / 2) : Number((ran / 2).toPrecision(1)), link, kind: kind.name, value: kind.value ?? null }]);
        }}
      >
        Add an event
      </button>
    </fieldset>
  );
}
