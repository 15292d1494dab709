// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { call, part } from '../api.js';
import { html } from '../html.js';
import { ask, Bar, Foreign, Table } from '../parts.js';
import { act, may, now, useStore } from '../store.js';
import { distance, number, plural } from '../words.js';

const without = (limit) => `${limit.key} has no limit until a job brings one.`;

async function override(limit) {
  const answer = await ask({
    title: 'Set this limit?', action: 'Set',
    text: html`What jobs bring for <${Foreign} text=${limit.key} /> no longer changes it.`,
    fields: [{ name: 'concurrency', label: 'Active at once', type: 'number', min: 0, max: 8192, value: limit.concurrency?.limit ?? 1 }],
  });
  if (answer)
    act(
      () => call(`admin/rate-limits/${part(limit.key)}/override`, { method: 'PUT', body: { concurrency: Number(answer.concurrency) } }),
      `${limit.key}: at most ${answer.concurrency} at once.`,
      limit.override ? undefined : { action: () => call(`admin/rate-limits/${part(limit.key)}/override`, { method: 'DELETE' }), done: without(limit) },
    );
}

async function release(limit) {
  const yes = await ask({ title: 'Take the setting back?', action: 'Take back', text: html`<${Foreign} text=${limit.key} /> holds no job back until a job brings the limit again.` });
  if (yes)
    act(() => call(`admin/rate-limits/${part(limit.key)}/override`, { method: 'DELETE' }), without(limit));
}

const every = (rule) => (rule ? `${number(rule.limit)} in ${rule.period}` : '–');

export function Limits() {
  const { sample } = useStore();
  const [key, setKey] = useState('');
  const found = sample.limits.filter((limit) => limit.key.includes(key));
  return html`
    ${sample.limits.length > 0 && html`<div class="filters">
      <label>Key contains <input data-filter type="search" value=${key} onInput=${(event) => setKey(event.target.value)} /></label>
      <span class="quiet" role="status">${number(found.length)} of ${plural(sample.limits.length, 'limit')}</span>
    </div>`}
    <${Table} caption="Limits" rows=${found} id=${(limit) => limit.key}
      empty=${sample.limits.length ? 'No limit has this in its key.' : 'No job and no operator has set a limit.'} columns=${[
      { head: 'Key', by: (limit) => limit.key, cell: (limit) => html`<${Foreign} text=${limit.key} />` },
      { head: 'At once', cell: (limit) => limit.concurrency?.limit === undefined
        ? number(limit.active_count) : html`<${Bar} share=${limit.active_count / limit.concurrency.limit} label=${`${number(limit.active_count)} of ${number(limit.concurrency.limit)}`} />` },
      { head: 'Rate', cell: (limit) => every(limit.rate) },
      { head: 'Throttle', cell: (limit) => every(limit.throttle) },
      { head: 'Held back', right: true, by: (limit) => limit.waiting_count, cell: (limit) => number(limit.waiting_count) },
      { head: 'Next', cell: (limit) => (limit.next_allowed_at ? distance(limit.next_allowed_at, now()) : 'now') },
      { head: 'Set by', cell: (limit) => (limit.override ? 'an operator' : 'jobs') },
      ...(may('admin') ? [{ head: 'Actions', cell: (limit) => html`
        <button onClick=${() => override(limit)} aria-label=${`Set ${limit.key}`}>Set</button>
        ${limit.override && html`<button onClick=${() => release(limit)} aria-label=${`Take back ${limit.key}`}>Take back</button>`}` }] : []),
    ]} />`;
}
