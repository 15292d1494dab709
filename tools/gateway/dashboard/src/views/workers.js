// SPDX-License-Identifier: Apache-2.0
import { call, part } from '../api.js';
import { html } from '../html.js';
import { ask, Bar, Foreign, JobLink, Pending, QueueLink, StateBadge, Table } from '../parts.js';
import { act, may, now, useAnswer, useStore } from '../store.js';
import { distance, duration, number, percent } from '../words.js';

const links = (names) => names.map((name, i) => html`${i > 0 && ', '}<${QueueLink} name=${name} />`);

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
      { head: 'Pool', cell: ({ pool, first }) => first && html`<${Foreign} text=${pool.name} />` },
      { head: 'Strategy', cell: ({ pool, first }) => first && pool.strategy + (pool.isolated ? ', isolated' : '') },
      { head: 'Active', right: true, cell: ({ pool, first }) =>
        first && (pool.concurrency ? `${number(pool.active_jobs)} of ${number(pool.concurrency)}` : number(pool.active_jobs)) },
      { head: 'Queue', cell: ({ queue }) => html`<${QueueLink} name=${queue} />` },
      { head: 'Entitled', right: true, cell: ({ due }) => percent(due) },
      { head: 'Share now', cell: ({ share }) => (share === undefined ? '–' : html`<${Bar} share=${share} />`) },
      { head: 'Handed out', right: true, cell: ({ pool, queue }) => number(pool.dispatched?.[queue]) },
    ]} />`;
}

async function quiet(id) {
  const yes = await ask({
    title: `Quiet ${id}?`, action: 'Quiet', text: 'It gets no more jobs, and finishes those that it has.',
  });
  if (yes)
    act(() => call(`admin/workers/${part(id)}/quiet`, { method: 'POST' }), `${id} gets no more jobs.`, {
      action: () => call('admin/workers/directive', { method: 'POST', body: { worker_id: id, directive: 'running' } }),
      done: `${id} gets jobs again.`,
    });
}

export function Workers() {
  const { sample, before } = useStore();
  const http = useAnswer('admin/workers?per_page=100', { always: true });
  const processes = [...sample.workers].sort((a, b) => b.active_jobs - a.active_jobs || a.pid - b.pid);
  return html`
    <${Table} caption="Processes" rows=${processes} id=${(worker) => worker.pid} columns=${[
      { head: 'Process', cell: (worker) => html`<span class="mono">${worker.pid}</span> ${worker.broker && 'broker'} ${worker.supervisor && 'supervises'}` },
      { head: 'State', cell: (worker) => html`<${StateBadge} state=${worker.state} />` },
      { head: 'Pools', cell: (worker) => html`<${Foreign} text=${worker.pools.join(', ') || '–'} />` },
      { head: 'Queues', cell: (worker) => links(worker.queues.slice(0, 6)) },
      { head: 'Active', right: true, cell: (worker) => number(worker.active_jobs) },
      { head: 'Longest held', cell: (worker) => worker.oldest
        ? html`<${JobLink} id=${worker.oldest.id} /> <${Foreign} text=${worker.oldest.type} />, ${duration(worker.oldest.age_ms)}` : '–' },
      { head: 'Taken ever', right: true, cell: (worker) => number(worker.dispatched_total) },
      { head: 'Last sign', cell: (worker) => (worker.last_sign ? distance(worker.last_sign, now()) : '–') },
    ]} />
    <${Pending} answer=${http} />
    ${http.data && html`<${Table} caption="Workers of this gateway, over HTTP" rows=${http.data.items} id=${(worker) => worker.id}
      empty="No worker has spoken to this gateway." columns=${[
        { head: 'Worker', cell: (worker) => html`<${Foreign} text=${worker.id} />` },
        { head: 'State', cell: (worker) => html`<${StateBadge} state=${worker.state} />` },
        { head: 'Host', cell: (worker) => html`<${Foreign} text=${worker.hostname ?? '–'} />` },
        { head: 'Pool', cell: (worker) => html`<${Foreign} text=${worker.pool ?? '–'} />` },
        { head: 'Queues', cell: (worker) => links(worker.queues.slice(0, 6)) },
        { head: 'Active', right: true, cell: (worker) => worker.concurrency ? `${number(worker.active_jobs)} of ${number(worker.concurrency)}` : number(worker.active_jobs) },
        { head: 'Last heard', cell: (worker) => distance(worker.last_heartbeat_at, now()) },
        ...(may('admin') ? [{ head: 'Actions', cell: (worker) => worker.state === 'running' && html`<button onClick=${() => quiet(worker.id)} aria-label=${`Quiet ${worker.id}`}>Quiet</button>` }] : []),
      ]} />`}
    <${Pools} pools=${sample.pools} before=${before?.sample} />`;
}
