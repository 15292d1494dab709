// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from 'preact/hooks';
import { query as queryOf } from '../api.js';
import { html } from '../html.js';
import { Foreign, JobLink, Pages, PER_PAGE, Pending, QueueLink, StateBadge, Table } from '../parts.js';
import { now, useAnswer, useStore } from '../store.js';
import { distance, number } from '../words.js';

const CONFLICTS = {
  reject: 'are refused', ignore: 'are left out', replace: 'replace it',
  replace_except_schedule: 'replace it, at its time',
};
const LIVE = 'available,active,scheduled,retryable,pending';

const statesOf = ({ states }) => (states.length === 5 && states.every((each) => LIVE.includes(each)) ? 'until it ends' : states.join(', '));

export function Unique({ query }) {
  const { sample } = useStore();
  const [behind, setBehind] = useState([]);
  const queue = query.queue ?? '';
  useEffect(() => setBehind([]), [queue]);
  const answer = useAnswer(`admin/jobs${queryOf({ unique: true, queue, cursor: behind[behind.length - 1], per_page: PER_PAGE })}`);
  const { items = [], pagination = {} } = answer.data ?? {};
  const met = sample.queues.filter((each) => each.totals.conflicts > 0);
  return html`
    <${Table} caption="New jobs that met another of their key" rows=${met} id=${(each) => each.name} empty="None so far." columns=${[
      { head: 'Queue', by: (each) => each.name, cell: (each) => html`<${QueueLink} name=${each.name} />` },
      { head: 'Conflicts', right: true, by: (each) => each.totals.conflicts, cell: (each) => number(each.totals.conflicts) },
    ]} />
    <div class="filters" role="search">
      <label>Queue <select data-filter value=${queue} onChange=${(event) => { location.hash = `#/unique${queryOf({ queue: event.target.value })}`; }}>
        <option value="">all</option>
        ${sample.queues.map((each) => html`<option value=${each.name}>${each.name}</option>`)}
      </select></label>
    </div>
    <${Pending} answer=${answer} />
    <${Table} caption="Keys that are held" rows=${items} id=${(job) => job.id} empty=${answer.data ? 'No unique job keeps others out.' : '…'} columns=${[
      { head: 'Key', cell: (job) => html`<span class="mono">${job.unique_key}</span>` },
      { head: 'Held by', cell: (job) => html`<${JobLink} id=${job.id} /> <${StateBadge} state=${job.state} />` },
      { head: 'Type', cell: (job) => html`<${Foreign} text=${job.type} />` },
      { head: 'Queue', cell: (job) => html`<${QueueLink} name=${job.queue} />` },
      { head: 'Its policy: others', cell: (job) => `${CONFLICTS[job.unique_policy.on_conflict]}${job.unique_policy.raise_priority ? ', and may raise its priority' : ''}` },
      { head: 'Held', cell: (job) => html`<${Foreign} text=${statesOf(job.unique_policy)} />` },
      { head: 'At the longest', right: true, cell: (job) => (job.unique_until ? distance(job.unique_until, now()) : 'no end') },
      { head: 'Created', right: true, cell: (job) => distance(job.created_at, now()) },
    ]} />
    <${Pages} answer=${answer} behind=${behind} setBehind=${setBehind} more=${pagination.next_cursor} />`;
}
