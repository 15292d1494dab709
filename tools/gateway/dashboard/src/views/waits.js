// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { html } from '../html.js';
import { Bar, Pending, QueueLink, Table, usePart } from '../parts.js';
import { useAnswer, useStore } from '../store.js';
import { duration, number, percent, priority } from '../words.js';
import { levelsOf } from './queues.js';

const KINDS = {
  from_available: 'waited since it became available', from_enqueue: 'waited since its enqueue', runs: 'ran',
};

/** {bound: jobs in this step alone} of a histogram that counts up. */
function steps(histogram) {
  let below = 0;
  const own = new Map();
  for (const [bound, upTo] of Object.entries(histogram.up_to_ms)) {
    if (upTo > below) own.set(Number(bound), upTo - below);
    below = Math.max(below, upTo);
  }
  if (histogram.count > below) own.set(Infinity, histogram.count - below);
  return own;
}

function HeatMap({ rows, kind, convention }) {
  const table = rows
    .map((row) => ({ level: row.priority, queue: row.queue, count: row[kind].count, sum: row[kind].sum_ms, steps: steps(row[kind]) }))
    .filter((row) => row.count > 0);
  const [shown, way] = usePart(table, 'How long jobs waited');
  if (table.length === 0) return html`<p class="quiet">Nothing was handed out yet.</p>`;
  const bounds = [...new Set(table.flatMap((row) => [...row.steps.keys()]))].sort((a, b) => a - b);
  const label = (bound) => (bound === Infinity ? 'longer' : `≤ ${duration(bound)}`);
  return html`<div class="scroll" role="region" aria-label="How long jobs waited" tabindex="0"><table class="heat">
    <caption>Share of each level's jobs by time; darker is more</caption>
    <thead><tr><th scope="col">Queue</th><th scope="col">Priority</th>${bounds.map((bound) => html`<th scope="col" class="right">${label(bound)}</th>`)}
      <th scope="col" class="right">Mean</th><th scope="col" class="right">Jobs</th></tr></thead>
    <tbody>${shown.map((row) => html`<tr key=${`${row.queue} ${row.level}`}>
      <td><${QueueLink} name=${row.queue} /></td><th scope="row" class="short">${priority(row.level, convention)}</th>
      ${bounds.map((bound) => {
        const jobs = row.steps.get(bound) ?? 0;
        const share = jobs / row.count;
        const heat = share === 0 ? 0 : Math.max(1, Math.min(5, Math.ceil(share * 5)));
        return html`<td class=${`right heat-${heat}`} title=${`${number(jobs)} jobs`}>${share === 0 ? '' : share < 0.001 ? '< 0.1 %' : percent(share)}</td>`;
      })}
      <td class="right">${duration(row.sum / row.count)}</td><td class="right">${number(row.count)}</td>
    </tr>`)}</tbody>
  </table></div>
  ${way}`;
}

export function Waits({ query }) {
  const { sample } = useStore();
  const [kind, setKind] = useState('from_available');
  const answer = useAnswer('admin/waits');
  const { convention } = sample.segment;
  const queues = sample.queues.filter((queue) => !query.queue || queue.name === query.queue);
  const levels = queues.flatMap((queue) => levelsOf(queue, convention).map(([level, jobs]) => ({ queue: queue.name, level, jobs })));
  const most = levels.reduce((max, { jobs }) => Math.max(max, jobs), 1);
  const rows = (answer.data?.items ?? []).filter((row) => !query.queue || row.queue === query.queue);
  return html`
    <div class="filters">
      <label>Queue <select data-filter value=${query.queue ?? ''} onChange=${(event) => { location.hash = `#/waits${event.target.value ? `?queue=${encodeURIComponent(event.target.value)}` : ''}`; }}>
        <option value="">all</option>${sample.queues.map((each) => html`<option value=${each.name}>${each.name}</option>`)}
      </select></label>
      <label>How long a job <select value=${kind} onChange=${(event) => setKind(event.target.value)}>
        ${Object.entries(KINDS).map(([value, name]) => html`<option value=${value}>${name}</option>`)}
      </select></label>
    </div>
    <${Pending} answer=${answer} />
    ${answer.data && html`<${HeatMap} rows=${rows} kind=${kind} convention=${convention} />`}
    <${Table} caption="Available jobs by priority" rows=${levels} id=${({ queue, level }) => `${queue} ${level}`} empty="No job is available." columns=${[
      { head: 'Queue', cell: ({ queue }) => html`<${QueueLink} name=${queue} />` },
      { head: 'Priority', cell: ({ level }) => html`<span class="short">${priority(level, convention)}</span>` },
      { head: 'Jobs', cell: ({ jobs }) => html`<${Bar} share=${jobs / most} label=${number(jobs)} />` },
    ]} />`;
}
