// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { call } from '../api.js';
import { html } from '../html.js';
import { ask, Bar, Foreign, JobLink, QueueLink, StateBadge, Table } from '../parts.js';
import { act, may, now, useStore } from '../store.js';
import { distance, duration, number, percent, plural } from '../words.js';

const NAMED = 6;
const links = (names) => (names.length === 0 ? '–' : html`${names.slice(0, NAMED).map((name, i) => html`${i > 0 && ', '}<${QueueLink} name=${name} />`)}${names.length > NAMED && ` and ${number(names.length - NAMED)} more`}`);

/** What each queue of a pool is due by its strategy: by weight, or the same for all; strict promises none. */
function entitled(pool) {
  if (pool.strategy !== 'weighted' && pool.strategy !== 'round-robin') return () => undefined;
  const weight = (queue) => (pool.strategy === 'weighted' ? pool.weights?.[queue] ?? 1 : 1);
  const all = pool.queues.reduce((sum, queue) => sum + weight(queue), 0);
  return (queue) => weight(queue) / all;
}

function Pools({ pools, before }) {
  const rows = pools.flatMap((pool) => {
    const due = entitled(pool);
    const old = before?.pools.find((each) => each.name === pool.name);
    const grown = (queue) => (pool.dispatched?.[queue] ?? 0) - (old?.dispatched?.[queue] ?? 0);
    const all = pool.queues.reduce((sum, queue) => sum + grown(queue), 0);
    return pool.queues.map((queue, i) => ({
      pool, queue, first: i === 0, due: due(queue), share: all ? grown(queue) / all : undefined,
    }));
  });
  return html`<${Table} caption="Pools and their queues" rows=${rows} id=${({ pool, queue }) => `${pool.name} ${queue}`}
    empty="No pool is set up: workers choose their queues themselves." columns=${[
      { head: 'Pool', cell: ({ pool, first }, n) => (first || n === 0) && html`<${Foreign} text=${pool.name} />` },
      { head: 'Strategy', cell: ({ pool, first }, n) => (first || n === 0) && pool.strategy + (pool.isolated ? ', isolated' : '') },
      { head: 'Active', right: true, cell: ({ pool, first }, n) =>
        (first || n === 0) && (pool.concurrency ? `${number(pool.active_jobs)} of ${number(pool.concurrency)}` : number(pool.active_jobs)) },
      { head: 'Queue', cell: ({ queue }) => html`<${QueueLink} name=${queue} />` },
      { head: 'Entitled', right: true, cell: ({ due }) => percent(due) },
      { head: 'Share now', cell: ({ share }) => (share === undefined ? '–' : html`<${Bar} share=${share} />`) },
      { head: 'Handed out', right: true, cell: ({ pool, queue }) => number(pool.dispatched?.[queue]) },
    ]} />`;
}

const tell = (id, directive) => () => call('admin/workers/directive', { method: 'POST', body: { worker_id: id, directive } });

async function quiet(id) {
  const yes = await ask({
    title: `Quiet ${id}?`, action: 'Quiet', text: 'It gets no more jobs, and finishes those that it has.',
  });
  if (yes)
    act(tell(id, 'quiet'), `${id} gets no more jobs.`, { action: tell(id, 'running'), done: `${id} gets jobs again.` });
}

async function resume(id, before) {
  const yes = await ask({ title: `Resume ${id}?`, action: 'Resume', text: 'It gets jobs again.' });
  if (yes)
    act(tell(id, 'running'), `${id} gets jobs again.`, { action: tell(id, before), done: `${id} gets no more jobs.` });
}

function Directive({ worker }) {
  if (worker.ended) return null;
  return worker.directive === 'running'
    ? html`<button onClick=${() => quiet(worker.id)} aria-label=${`Quiet ${worker.id}`}>Quiet</button>`
    : html`<button onClick=${() => resume(worker.id, worker.directive)} aria-label=${`Resume ${worker.id}`}>Resume</button>`;
}

/** Its state, or how it ended: for its silence, or with its process. One that left is not listed. */
const Condition = ({ worker }) => html`<${StateBadge} state=${worker.ended ?? worker.state} /> ${worker.returned_jobs > 0 && html`<small>${plural(worker.returned_jobs, 'job')} went to others</small>`}`;

function Registered({ workers }) {
  const [part, setPart] = useState('');
  const found = workers.filter((worker) => worker.id.includes(part));
  return html`
    ${workers.length > 0 && html`<div class="filters">
      <label>Name contains <input data-filter type="search" value=${part} onInput=${(event) => setPart(event.target.value)} /></label>
      <span class="quiet" role="status">${number(found.length)} of ${plural(workers.length, 'registered worker')}</span>
    </div>`}
    <${Table} caption="Registered workers" rows=${found} id=${(worker) => `${worker.id} ${worker.started_at}`}
      empty=${workers.length ? 'No worker has this in its name.' : 'No worker has said who it is.'} columns=${[
        { head: 'Worker', by: (worker) => worker.id, cell: (worker) => html`<${Foreign} text=${worker.id} />` },
        { head: 'State', by: (worker) => worker.ended ?? worker.state, cell: (worker) => html`<${Condition} worker=${worker} />` },
        { head: 'Served by', cell: (worker) => worker.native ? html`process <span class="mono">${worker.pid}</span>` : 'a gateway' },
        { head: 'Host', cell: (worker) => html`<${Foreign} text=${worker.hostname ?? '–'} />` },
        { head: 'Pool', by: (worker) => worker.pool ?? '', cell: (worker) => html`<${Foreign} text=${worker.pool ?? '–'} />` },
        { head: 'Queues', cell: (worker) => links(worker.queues) },
        { head: 'Active', right: true, by: (worker) => worker.active_jobs, cell: (worker) => worker.ended ? '–' : worker.concurrency ? `${number(worker.active_jobs)} of ${number(worker.concurrency)}` : number(worker.active_jobs) },
        { head: 'Last sign', right: true, by: (worker) => worker.last_heartbeat_at, cell: (worker) => distance(worker.last_heartbeat_at, now()) },
        ...(may('admin') ? [{ head: 'Actions', cell: (worker) => html`<${Directive} worker=${worker} />` }] : []),
      ]} />`;
}

const roles = (worker) => [worker.broker && 'broker', worker.supervisor && 'supervisor'].filter(Boolean).join(', ');

export function Workers() {
  const { sample, before } = useStore();
  const processes = [...sample.workers].sort((a, b) => b.active_jobs - a.active_jobs || a.pid - b.pid);
  return html`
    <${Registered} workers=${sample.registered_workers} />
    <${Table} caption="Processes" rows=${processes} id=${(worker) => worker.pid} columns=${[
      { head: 'Process', cell: (worker) => html`<span class="mono">${worker.pid}</span> ${roles(worker)}` },
      { head: 'State', cell: (worker) => html`<${StateBadge} state=${worker.state} />` },
      { head: 'Pools', cell: (worker) => html`<${Foreign} text=${worker.pools.join(', ') || '–'} />` },
      { head: 'Queues', cell: (worker) => links(worker.queues) },
      { head: 'Active', right: true, cell: (worker) => number(worker.active_jobs) },
      { head: 'Longest held', cell: (worker) => worker.oldest
        ? html`<${JobLink} id=${worker.oldest.id} /> <${Foreign} text=${worker.oldest.type} />, ${duration(worker.oldest.age_ms)}` : '–' },
      { head: 'Taken ever', right: true, cell: (worker) => number(worker.dispatched_total) },
      { head: 'Last sign', right: true, cell: (worker) => (worker.last_sign ? distance(worker.last_sign, now()) : '–') },
    ]} />
    <${Pools} pools=${sample.pools} before=${before?.sample} />`;
}
