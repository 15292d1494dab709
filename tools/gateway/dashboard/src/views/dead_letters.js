// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from 'preact/hooks';
import { call, query as queryOf } from '../api.js';
import { html } from '../html.js';
import { ask, Foreign, JobLink, Pending, QueueLink, Table, Tile } from '../parts.js';
import { act, may, now, useAnswer, useStore } from '../store.js';
import { distance, number, plural } from '../words.js';
import { remove, retry } from './job.js';

const PER_PAGE = 50;

async function all(verb, queue, total) {
  const where = queue ? `of ${queue}` : 'of all queues';
  const retries = verb === 'retry';
  const yes = await ask({
    title: retries ? 'Retry these dead letters?' : 'Remove these dead letters?', danger: !retries,
    action: retries ? 'Retry all' : 'Remove all',
    text: `${plural(total, 'dead letter')} ${where}${retries ? ' become available again.' : ' are removed for good.'}`,
  });
  if (!yes) return;
  const chosen = queue ? { queue } : {};
  if (retries)
    act(() => call('admin/jobs/bulk/retry', { method: 'POST', body: { filter: chosen, confirm: true } }),
      (reply) => `${number(reply.succeeded)} of ${plural(reply.matched, 'dead letter')} available again.`);
  else
    act(() => call('admin/dead-letter', { method: 'DELETE', body: { ...chosen, confirm: true } }),
      (reply) => `${number(reply.purged)} of ${plural(reply.matched, 'dead letter')} removed.`);
}

export function DeadLetters({ query }) {
  const { sample } = useStore();
  const [page, setPage] = useState(1);
  useEffect(() => setPage(1), [query.queue]);
  const stats = useAnswer(`admin/dead-letter/stats${queryOf({ queue: query.queue })}`);
  const answer = useAnswer(`admin/dead-letter${queryOf({ queue: query.queue, page, per_page: PER_PAGE })}`);
  const { items = [], pagination = { total: 0 } } = answer.data ?? {};
  const errors = Object.entries(stats.data?.by_error_type ?? {}).sort((a, b) => b[1] - a[1]).slice(0, 10);
  const admin = may('admin');
  const queues = sample.queues.filter((queue) => queue.dead_letters > 0 || queue.name === query.queue);
  return html`
    <div class="filters">
      <label>Queue <select data-filter value=${query.queue ?? ''} onChange=${(event) => { location.hash = `#/dead${queryOf({ queue: event.target.value })}`; }}>
        <option value="">all</option>
        ${queues.map((queue) => html`<option value=${queue.name}>${queue.name} (${number(queue.dead_letters)})</option>`)}
      </select></label>
      ${admin && pagination.total > 0 && html`
        <button onClick=${() => all('retry', query.queue, pagination.total)}>Retry all shown</button>
        <button class="danger" onClick=${() => all('delete', query.queue, pagination.total)}>Remove all shown</button>`}
    </div>
    <dl class="tiles">
      <${Tile} name="dead letters" value=${number(stats.data?.total)} />
      <${Tile} name="oldest" value=${stats.data?.oldest_at ? distance(stats.data.oldest_at, now()) : '–'} />
      <${Tile} name="newest" value=${stats.data?.newest_at ? distance(stats.data.newest_at, now()) : '–'} />
    </dl>
    ${errors.length > 0 && html`<${Table} caption="Why, the most frequent first" rows=${errors} id=${([error]) => error} columns=${[
      { head: 'Error', cell: ([error]) => html`<${Foreign} text=${error} />` },
      { head: 'Dead letters', right: true, cell: ([, n]) => number(n) },
    ]} />`}
    <${Pending} answer=${answer} />
    <${Table} caption="Dead letters" rows=${items} id=${(job) => job.id} empty=${answer.data ? 'None.' : '…'} columns=${[
      { head: 'Job', cell: (job) => html`<${JobLink} id=${job.id} />` },
      { head: 'Type', cell: (job) => html`<${Foreign} text=${job.type} />` },
      { head: 'Queue', cell: (job) => html`<${QueueLink} name=${job.queue} />` },
      { head: 'Attempts', right: true, cell: (job) => number(job.attempt) },
      { head: 'Last error', cell: (job) => {
        const last = job.errors?.[job.errors.length - 1];
        return last ? html`<${Foreign} text=${`${last.code ?? last.type}: ${(last.message ?? '').slice(0, 200)}`} />` : '–';
      } },
      { head: 'Died', right: true, cell: (job) => distance(job.discarded_at, now()) },
      ...(admin ? [{ head: 'Actions', cell: (job) => html`
        <button onClick=${() => retry(job)} aria-label=${`Retry ${job.id}`}>Retry</button>
        <button class="danger" onClick=${() => remove(job)} aria-label=${`Remove ${job.id}`}>Remove</button>` }] : []),
    ]} />
    <nav class="pages" aria-label="Pages">
      <button disabled=${page === 1} onClick=${() => setPage(page - 1)}>Previous</button>
      <span role="status">page ${page} of ${Math.max(1, Math.ceil(pagination.total / PER_PAGE))}</span>
      <button disabled=${page * PER_PAGE >= pagination.total} onClick=${() => setPage(page + 1)}>Next</button>
    </nav>`;
}
