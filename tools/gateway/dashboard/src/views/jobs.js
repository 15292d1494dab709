// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from 'preact/hooks';
import { call, query as queryOf } from '../api.js';
import { html } from '../html.js';
import { ask, Foreign, JobLink, Pages, PER_PAGE, Pending, QueueLink, StateBadge, Table } from '../parts.js';
import { act, may, now, useAnswer, useStore } from '../store.js';
import { distance, number, plural, priority } from '../words.js';

const STATES = ['available', 'active', 'scheduled', 'retryable', 'pending', 'completed', 'cancelled', 'discarded'];
const WAITING = ['available', 'scheduled', 'retryable', 'pending'];
const NAMES = ['queue', 'state', 'type', 'tenant', 'sort', 'order'];
const SORTS = {
  'created_at desc': 'newest first', 'created_at asc': 'oldest first', 'priority asc': 'lowest priority number first',
  'priority desc': 'highest priority number first', 'scheduled_at asc': 'scheduled soonest first',
};

/** Cancels what matches; of jobs in all states those that wait. */
async function cancelAll(filter, total) {
  const named = Object.entries(filter).map(([name, value]) => `${name} ${value}`).join(', ') || 'every queue';
  const what = filter.state ? `${plural(total, 'job')} match` : 'All waiting jobs that match are meant';
  const yes = await ask({
    title: 'Cancel these jobs?', action: 'Cancel them', danger: true,
    text: html`${what} now: <${Foreign} text=${named} />. Active jobs are asked to stop. This cannot be undone.`,
  });
  if (yes)
    act(() => call('admin/jobs/bulk/cancel', { method: 'POST', body: { filter, confirm: true } }),
      (reply) => `${number(reply.succeeded)} of ${plural(reply.matched, 'job')} cancelled${reply.failed ? `, ${number(reply.failed)} had gone on meanwhile` : ''}.`);
}

export function Jobs({ query }) {
  const { sample } = useStore();
  const [behind, setBehind] = useState([]); // cursors of the pages before this one
  const filter = Object.fromEntries(NAMES.slice(0, 4).filter((name) => query[name]).map((name) => [name, query[name]]));
  const sort = `${query.sort ?? 'created_at'} ${query.order ?? 'desc'}`;
  const filtered = JSON.stringify([filter, sort]);
  useEffect(() => setBehind([]), [filtered]);
  const byTime = !query.sort || query.sort === 'created_at';
  const place = byTime ? { cursor: behind[behind.length - 1] } : { page: behind.length + 1 };
  const answer = useAnswer(`admin/jobs${queryOf({ ...filter, sort: query.sort, order: query.order, ...place, per_page: PER_PAGE })}`);
  const set = (name, value) => {
    const next = { ...query, [name]: value };
    location.hash = `#/jobs${queryOf(Object.fromEntries(NAMES.map((each) => [each, next[each]])))}`;
  };
  const choose = (event) => {
    const [by, order] = event.target.value.split(' ');
    location.hash = `#/jobs${queryOf({ ...filter, sort: by, order })}`;
  };
  const { items = [], pagination = {} } = answer.data ?? {};
  const more = byTime ? pagination.next_cursor : pagination.page * PER_PAGE < pagination.total;
  const { convention } = sample.segment;
  return html`
    <div class="filters" role="search">
      <label>Queue <select data-filter value=${query.queue ?? ''} onChange=${(event) => set('queue', event.target.value)}>
        <option value="">all</option>
        ${query.queue && !sample.queues.some((each) => each.name === query.queue) && html`<option value=${query.queue}>${query.queue}</option>`}
        ${sample.queues.map((each) => html`<option value=${each.name}>${each.name}</option>`)}
      </select></label>
      <label>State <select value=${query.state ?? ''} onChange=${(event) => set('state', event.target.value)}>
        <option value="">all</option>${STATES.map((each) => html`<option value=${each}>${each}</option>`)}
      </select></label>
      <label>Type <input type="search" placeholder="mail.send or mail.*" key=${query.type} defaultValue=${query.type ?? ''} onChange=${(event) => set('type', event.target.value.trim())} /></label>
      <label>Tenant <input type="search" key=${query.tenant} defaultValue=${query.tenant ?? ''} onChange=${(event) => set('tenant', event.target.value.trim())} /></label>
      <label>Order <select value=${sort} onChange=${choose}>
        ${Object.entries(SORTS).map(([value, name]) => html`<option value=${value}>${name}</option>`)}
      </select></label>
      ${Object.keys(filter).length > 0 && html`<a href="#/jobs">all jobs</a>`}
      ${may('admin') && (!filter.state || WAITING.includes(filter.state)) && pagination.total > 0 &&
      html`<button class="danger" onClick=${() => cancelAll(filter, pagination.total)}>Cancel all that match</button>`}
    </div>
    <${Finder} />
    <${Pending} answer=${answer} />
    <${Table} caption="Jobs" rows=${items} id=${(job) => job.id} empty=${answer.data ? 'No job matches.' : '…'} columns=${[
      { head: 'Job', cell: (job) => html`<${JobLink} id=${job.id} />` },
      { head: 'Type', cell: (job) => html`<${Foreign} text=${job.type} />` },
      { head: 'Queue', cell: (job) => html`<${QueueLink} name=${job.queue} />` },
      { head: 'State', cell: (job) => html`<${StateBadge} state=${job.state} />` },
      { head: 'Priority', right: true, cell: (job) => priority(job.priority, convention) },
      { head: 'Attempt', right: true, cell: (job) => `${job.attempt} of ${job.max_attempts ?? '–'}` },
      { head: 'Created', right: true, cell: (job) => distance(job.created_at, now()) },
      { head: 'Begins', right: true, cell: (job) => {
        const at = job.state === 'retryable' ? job.next_attempt_at : job.state === 'scheduled' ? job.scheduled_at : undefined;
        return at ? distance(at, now()) : '–';
      } },
    ]} />
    <${Pages} answer=${answer} behind=${behind} setBehind=${setBehind} more=${more} />`;
}

/** Straight to a job whose id is known. */
function Finder() {
  const submit = (event) => {
    event.preventDefault();
    const id = event.target.elements.id.value.trim();
    if (id) location.hash = `#/jobs/${encodeURIComponent(id)}`;
  };
  return html`<form class="filters" onSubmit=${submit}>
    <label>Job by its id <input name="id" size="36" spellcheck=${false} autocomplete="off" /></label>
    <button type="submit">Show</button>
  </form>`;
}
