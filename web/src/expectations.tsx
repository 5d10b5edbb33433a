// What a lab expects: published, bound, measured.

import type { Lab } from "./data";

const WORDS = { ok: "ok", known: "known miss", stale: "ok, cause given", miss: "MISS" };

export function Expectations(props: { lab: Lab }) {
  const { lab } = props;
  return (
    <section aria-label="Expectations">
      <h2>Expected and measured</h2>
      {lab.expectations.length > 0 && (
        <div class="wide" tabIndex={0} role="group" aria-label="Table">
          <table data-table="expectations">
            <thead>
              <tr>
                <th scope="col">expectation</th>
                <th scope="col">published</th>
                <th scope="col">bound</th>
                <th scope="col">measured</th>
                <th scope="col">verdict</th>
              </tr>
            </thead>
            <tbody>
              {lab.expectations.map((each) => (
                <tr key={each.name}>
                  <th scope="row">{each.name}</th>
                  <td>{each.published}</td>
                  <td>{each.bound}</td>
                  <td>{each.measured}</td>
                  <td class={`verdict ${each.verdict}`}>{WORDS[each.verdict]}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {lab.expectations
        .filter((each) => each.cause)
        .map((each) => (
          <p key={each.name}>
            <b>{each.name}</b>: {each.cause}
          </p>
        ))}
      {lab.note && <p class="quiet">{lab.note}</p>}
      <p class="quiet">Source: {lab.source}</p>
    </section>
  );
}
