// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { html } from '../html.js';
import { Bar, Foreign, QueueLink, Table } from '../parts.js';
import { useStore } from '../store.js';
import { duration, number, percent } from '../words.js';

export function Tenants({ query }) {
  const { sample } = useStore();
  const [name, setName] = useState('');
  const found = sample.tenants.filter(
    (each) => (!query.queue || each.queue === query.queue) && each.tenant.includes(name),
  );
  const rows = [...found].sort((a, b) => b.depth + b.active - a.depth - a.active);
  return html`
    <div class="filters">
      <label>Name contains <input data-filter type="search" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
      ${query.queue && html`<a href="#/tenants">of all queues, not only <bdi>${query.queue}</bdi></a>`}
      <span class="quiet" role="status">${number(found.length)} found</span>
    </div>
    <${Table} caption="Tenants in their queues" rows=${rows} id=${(each) => `${each.queue} ${each.tenant}`} empty="No job names a tenant." columns=${[
      { head: 'Tenant', by: (each) => each.tenant, cell: (each) => (each.tenant ? html`<${Foreign} text=${each.tenant} />` : html`<i>jobs without one</i>`) },
      { head: 'Queue', by: (each) => each.queue, cell: (each) => html`<${QueueLink} name=${each.queue} />` },
      { head: 'Waiting', right: true, by: (each) => each.depth, cell: (each) => each.max_depth ? `${number(each.depth)} of ${number(each.max_depth)}` : number(each.depth) },
      { head: 'Active', right: true, by: (each) => each.active, cell: (each) => number(each.active) },
      { head: 'Oldest', right: true, by: (each) => each.oldest_age_ms, cell: (each) => (each.depth ? duration(each.oldest_age_ms) : '–') },
      { head: 'Weight', right: true, by: (each) => each.weight, cell: (each) => number(each.weight) },
      { head: 'Entitled', right: true, by: (each) => each.entitled_share ?? -1, cell: (each) => percent(each.entitled_share) },
      { head: 'Share of the last minute', by: (each) => each.actual_share, cell: (each) => html`<${Bar} share=${each.actual_share} />` },
      { head: 'Jobs', cell: (each) => each.tenant && html`<a href=${`#/jobs?queue=${encodeURIComponent(each.queue)}&tenant=${encodeURIComponent(each.tenant)}`}>show</a>` },
    ]} />`;
}
