// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { Chart } from '../chart.js';
import { html } from '../html.js';
import { Bar, QueueLink, StateBadge, Table, Tile } from '../parts.js';
import { now, rateOf, useStore } from '../store.js';
import { bytes, duration, number, percent, plural, rate } from '../words.js';

const SPANS = { '5 minutes': 300_000, '15 minutes': 900_000, '1 hour': 3_600_000 };

/** What wants a person's attention, worst first. */
function Attention({ sample }) {
  const wrong = sample.queues.filter((queue) => queue.state !== 'running' || queue.dead_letters > 0);
  const full = sample.segment.memory.filter((pool) => pool.capacity > 0 && pool.used / pool.capacity > 0.9);
  if (wrong.length + full.length === 0 && sample.segment.overdue_ms < 5_000) return null;
  return html`<section aria-labelledby="attention">
    <h2 id="attention">Worth a look</h2>
    <ul class="attention">
      ${full.map((pool) => html`<li><${StateBadge} state="full" /> memory for ${pool.name}: ${percent(pool.used / pool.capacity)} used</li>`)}
      ${sample.segment.overdue_ms >= 5_000 &&
      html`<li><${StateBadge} state="warning" /> a job that is due waits since ${duration(sample.segment.overdue_ms)}</li>`}
      ${wrong.slice(0, 12).map(
        (queue) => html`<li><${StateBadge} state=${queue.state} /> <${QueueLink} name=${queue.name} />
          ${queue.depth > 0 && html`: ${number(queue.depth)} wait, the oldest for ${duration(queue.oldest_age_ms)}`}
          ${queue.dead_letters > 0 &&
          html` · <a href=${`#/dead?queue=${encodeURIComponent(queue.name)}`}>${plural(queue.dead_letters, 'dead letter')}</a>`}
        </li>`,
      )}
      ${wrong.length > 12 && html`<li>and <a href="#/queues">${wrong.length - 12} more queues</a></li>`}
    </ul>
  </section>`;
}

export function Overview() {
  const { sample, marks, stats } = useStore();
  const [span, setSpan] = useState('5 minutes');
  const end = Date.parse(now());
  const begin = end - SPANS[span];
  const shown = marks.filter((mark) => mark.at >= begin - 10_000);
  // A gateway that has just begun fills the charts too, from a minute on.
  const from = Math.max(begin, Math.min(shown[0]?.at ?? begin, end - 60_000));
  const { segment, queues } = sample;
  const waiting = queues.reduce((sum, queue) => sum + queue.depth, 0);
  const oldest = queues.reduce((most, queue) => Math.max(most, queue.oldest_age_ms), 0);
  const workers = sample.registered_workers.filter((worker) => !worker.ended).length;
  const busiest = [...queues].sort((a, b) => b.depth + b.active - a.depth - a.active).slice(0, 8);
  return html`
    <dl class="tiles">
      <${Tile} name="waiting" value=${number(waiting)} note=${waiting ? `oldest ${duration(oldest)}` : 'none waits'} />
      <${Tile} name="active" value=${number(stats.jobs.active)} note=${plural(workers, 'registered worker')} />
      <${Tile} name="in" value=${rate(rateOf('enqueued'))} note=${`${number(sample.totals.enqueued)} ever`} />
      <${Tile} name="done" value=${rate(rateOf('completed'))} note=${`${number(sample.totals.completed)} ever`} />
      <${Tile} name="failed" value=${rate(rateOf('failed'))} note=${`${number(sample.totals.failed)} ever`} />
      <${Tile} name="dead letters" value=${html`<a href="#/dead">${number(stats.jobs.dead)}</a>`} kind=${stats.jobs.dead ? 'warn' : ''} />
      <${Tile} name="memory" value=${percent(segment.bytes_used / segment.bytes_total)} note=${`of ${bytes(segment.bytes_total)}`} />
      <${Tile} name="deaths" value=${number(segment.counters.deaths)} note=${plural(segment.counters.repairs, 'repair')} />
    </dl>
    <${Attention} sample=${sample} />
    <section aria-labelledby="time">
      <div class="head"><h2 id="time">Over time</h2>
        <label>Span <select value=${span} onChange=${(event) => setSpan(event.target.value)}>
          ${Object.keys(SPANS).map((each) => html`<option>${each}</option>`)}
        </select></label>
      </div>
      <div class="charts">
        <${Chart} title="Jobs a second" marks=${shown} from=${from} print=${rate} series=${[
          { name: 'in', key: 'enqueued', colour: '--blue' },
          { name: 'done', key: 'completed', colour: '--green' },
          { name: 'retried', key: 'retried', colour: '--amber' },
          { name: 'failed', key: 'failed', colour: '--red' },
        ]} />
        <${Chart} title="Depth" whole=${true} marks=${shown} from=${from} print=${(n) => number(Math.round(n))} series=${[
          { name: 'waiting', key: 'depth', colour: '--blue' },
          { name: 'active', key: 'active', colour: '--green' },
          { name: 'dead letters', key: 'dead', colour: '--red' },
        ]} />
        <${Chart} title="Age of the oldest waiting job" marks=${shown} from=${from} print=${(s) => duration(s * 1000)} series=${[
          { name: 'oldest', key: 'oldest', colour: '--amber' },
        ]} />
        <${Chart} title="Memory in use" marks=${shown} from=${from} print=${percent} series=${[
          { name: 'used', key: 'memory', colour: '--violet' },
        ]} />
        <${Chart} title="Deaths and repairs, ever" whole=${true} marks=${shown} from=${from} print=${(n) => number(Math.round(n))} series=${[
          { name: 'deaths', key: 'deaths', colour: '--red' },
          { name: 'repairs', key: 'repairs', colour: '--green' },
        ]} />
      </div>
    </section>
    <${Table} caption="Busiest queues" rows=${busiest} id=${(queue) => queue.name} empty="No queue yet." columns=${[
      { head: 'Queue', cell: (queue) => html`<${QueueLink} name=${queue.name} />` },
      { head: 'State', cell: (queue) => html`<${StateBadge} state=${queue.state} />` },
      { head: 'Waiting', right: true, cell: (queue) => number(queue.depth) },
      { head: 'Active', right: true, cell: (queue) => number(queue.active) },
      { head: 'Oldest', right: true, cell: (queue) => (queue.depth ? duration(queue.oldest_age_ms) : '–') },
      { head: 'In', right: true, cell: (queue) => rate(rateOf('enqueued', queue.name)) },
      { head: 'Done', right: true, cell: (queue) => rate(rateOf('completed', queue.name)) },
    ]} />
    <${Table} caption="Memory" rows=${segment.memory} id=${(pool) => pool.name} columns=${[
      { head: 'For', cell: (pool) => pool.name },
      { head: 'In use', cell: (pool) => html`<${Bar} share=${pool.used / pool.capacity} kind=${pool.used / pool.capacity > 0.9 ? 'red' : ''} />` },
      { head: 'Used', right: true, cell: (pool) => number(pool.used) },
      { head: 'There are', right: true, cell: (pool) => number(pool.capacity) },
      { head: 'Bytes', right: true, cell: (pool) => bytes(pool.capacity * pool.unit_bytes) },
    ]} />`;
}
