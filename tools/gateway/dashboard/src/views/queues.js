// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { call, part } from '../api.js';
import { Chart } from '../chart.js';
import { html } from '../html.js';
import { ask, Bar, Json, Pending, QueueLink, StateBadge, Table, Tile } from '../parts.js';
import { act, may, now, rateOf, useAnswer, usePast, useStore } from '../store.js';
import { bytes, duration, number, percent, priority, rate } from '../words.js';

const change = (name, verb) => () => call(`admin/queues/${part(name)}/${verb}`, { method: 'POST' });

async function pause(name) {
  const yes = await ask({
    title: `Pause ${name}?`, action: 'Pause', danger: true,
    text: 'No job of it is handed out until it is resumed. Jobs still come in, and active ones go on.',
  });
  if (yes)
    act(change(name, 'pause'), `${name} is paused.`, { action: change(name, 'resume'), done: `${name} runs again.` });
}

async function resume(name) {
  const yes = await ask({ title: `Resume ${name}?`, action: 'Resume', text: 'Its waiting jobs are handed out again.' });
  if (yes)
    act(change(name, 'resume'), `${name} runs again.`, { action: change(name, 'pause'), done: `${name} is paused.` });
}

const PURGED = {
  available: 'waiting now', scheduled: 'scheduled', retryable: 'waiting for a retry', pending: 'pending',
  discarded: 'dead letters',
};
async function purge(queue, state) {
  const jobs = state === 'discarded' ? queue.dead_letters : queue.by_state[state];
  const answer = await ask({
    title: `Purge ${queue.name}?`, action: 'Purge', danger: true,
    text: `${number(jobs)} jobs that are ${PURGED[state]} ${state === 'discarded' ? 'are removed' : 'are cancelled'}, and those that come meanwhile. This cannot be undone. Write the queue's name to go on.`,
    fields: [{ name: 'name', label: 'Queue', pattern: queue.name.replace(/[.]/g, '\\.'), title: queue.name }],
  });
  if (answer?.name === queue.name)
    act(
      () => call(`admin/queues/${part(queue.name)}/jobs`, { method: 'DELETE', body: { states: [state], confirm: true } }),
      (reply) => `${number(reply.purged_count)} jobs of ${queue.name} are gone.`,
    );
}

function Pause({ queue }) {
  return queue.paused
    ? html`<button onClick=${() => resume(queue.name)} aria-label=${`Resume ${queue.name}`}>Resume</button>`
    : html`<button onClick=${() => pause(queue.name)} aria-label=${`Pause ${queue.name}`}>Pause</button>`;
}

const SHARED = { tenants: 'tenants in turns', 'tenants across': 'tenants in turns across levels' };
/** "strict, tenants" as a sentence says it. */
function orderInWords(order) {
  const [first, ...more] = order.split(', ');
  const words = { strict: 'best priority first', ageing: 'best priority first, waiting jobs rise', weights: 'levels in turns by weight' };
  return [words[first] ?? first, ...more.map((each) => SHARED[each] ?? each)].join('; ');
}

const depthOf = (queue) => (queue.max_depth ? `${number(queue.depth)} of ${number(queue.max_depth)}` : number(queue.depth));

export function Queues() {
  const { sample } = useStore();
  const [part, setPart] = useState('');
  const rows = sample.queues.filter((queue) => queue.name.includes(part));
  return html`
    <div class="filters">
      <label>Name contains <input data-filter type="search" value=${part} onInput=${(event) => setPart(event.target.value)} /></label>
      <span class="quiet" role="status">${number(rows.length)} of ${number(sample.queues.length)} queues</span>
    </div>
    <${Table} caption="Queues" rows=${rows} id=${(queue) => queue.name} empty="No queue has this in its name."
      order=${{ column: 0, falls: false }} columns=${[
      { head: 'Queue', by: (queue) => queue.name, cell: (queue) => html`<${QueueLink} name=${queue.name} />` },
      { head: 'State', by: (queue) => queue.state, cell: (queue) => html`<${StateBadge} state=${queue.state} />` },
      { head: 'Waiting', right: true, by: (queue) => queue.depth, cell: depthOf },
      { head: 'Pressure', by: (queue) => queue.pressure, cell: (queue) =>
        queue.max_depth || queue.max_size_bytes ? html`<${Bar} share=${queue.pressure} kind=${queue.pressure >= 0.8 ? 'red' : ''} />` : 'no bound' },
      { head: 'Active', right: true, by: (queue) => queue.active, cell: (queue) => number(queue.active) },
      { head: 'Oldest', right: true, by: (queue) => queue.oldest_age_ms, cell: (queue) => (queue.depth ? duration(queue.oldest_age_ms) : '–') },
      { head: 'In', right: true, by: (queue) => rateOf('enqueued', queue.name) ?? 0, cell: (queue) => rate(rateOf('enqueued', queue.name)) },
      { head: 'Done', right: true, by: (queue) => rateOf('completed', queue.name) ?? 0, cell: (queue) => rate(rateOf('completed', queue.name)) },
      { head: 'Waited, half', right: true, by: (queue) => queue.wait.p50_ms, cell: (queue) => (queue.wait.count ? duration(queue.wait.p50_ms) : '–') },
      { head: 'Levels', cell: (queue) => html`<${Levels} queue=${queue} />` },
      { head: 'Order', by: (queue) => queue.order, cell: (queue) => html`<span class="words">${orderInWords(queue.order)}</span>` },
      { head: 'Dead', right: true, by: (queue) => queue.dead_letters, cell: (queue) => number(queue.dead_letters) },
      ...(may('admin') ? [{ head: 'Actions', cell: (queue) => html`<${Pause} queue=${queue} />` }] : []),
    ]} />`;
}

/** A thin bar: how the available jobs spread over the levels, best first. */
function Levels({ queue }) {
  const { convention } = useStore().sample.segment;
  const levels = levelsOf(queue, convention);
  const total = levels.reduce((sum, [, jobs]) => sum + jobs, 0);
  if (!total) return '–';
  const text = levels.map(([level, jobs]) => `${level}: ${number(jobs)}`).join(', ');
  return html`<span class="levels" role="img" aria-label=${`Available by priority: ${text}`} title=${text}>
    ${levels.map(([level, jobs]) => html`<span key=${level} class=${`level-${shade(level, convention)}`} style=${{ flexGrow: jobs }}></span>`)}
  </span>`;
}

/** 0 for the best priorities, 5 for all that come after. */
function shade(level, convention) {
  const steps = { qo: (255 - level) / 43, 'ojs-core': (100 - level) / 34 }[convention] ?? Number(level);
  return Math.max(0, Math.min(5, Math.floor(steps)));
}

/** [[level, jobs], ...], best first: an object's numbers come in rising order, whichever convention it has. */
export function levelsOf(queue, convention) {
  const levels = Object.entries(queue.available_by_priority).sort((a, b) => a[0] - b[0]);
  return convention === 'ojs' ? levels : levels.reverse();
}

const PERIODS = {
  '1 hour': { period: '5s', span: 3_600_000 },
  '1 day': { period: '1m', span: 86_400_000 },
  '30 days': { period: '1h', span: 2_592_000_000 },
};

/** What a queue did until now, as its gateway saw it. */
function Past({ queue }) {
  const [chosen, setChosen] = useState('1 hour');
  const { period, span } = PERIODS[chosen];
  const past = usePast(queue, period);
  const { marks, problem } = past;
  const end = Date.parse(now());
  const from = Math.max(end - span, Math.min(marks[0]?.at ?? end, end - 60_000));
  const draw = (title, print, series, whole = false) =>
    html`<${Chart} key=${`${title} ${chosen}`} title=${title} marks=${marks} from=${from} print=${print} whole=${whole} series=${series} />`;
  return html`<section aria-labelledby="time">
    <div class="head"><h2 id="time">Over time</h2>
      <label>Span <select value=${chosen} onChange=${(event) => setChosen(event.target.value)}>
        ${Object.keys(PERIODS).map((each) => html`<option>${each}</option>`)}
      </select></label>
    </div>
    ${problem && html`<p class="quiet">${problem.message}</p>`}
    ${!past.waiting && !problem && marks.length === 0 && html`<p class="quiet">Nothing was seen of it yet.</p>`}
    ${marks.length > 0 && html`<div class="charts">
      ${draw('Jobs a second', rate, [
        { name: 'in', key: 'enqueued', colour: '--blue' },
        { name: 'done', key: 'completed', colour: '--green' },
        { name: 'retried', key: 'retried', colour: '--amber' },
        { name: 'failed', key: 'failed', colour: '--red' },
      ])}
      ${draw('Depth', (n) => number(Math.round(n)), [
        { name: 'waiting', key: 'depth', colour: '--blue' },
        { name: 'active', key: 'active', colour: '--green' },
        { name: 'dead letters', key: 'dead', colour: '--red' },
      ], true)}
      ${draw('How long jobs waited', (s) => duration(s * 1000), [
        { name: 'half of them, at most', key: 'waitedHalf', colour: '--blue' },
        { name: '99 %, at most', key: 'waitedMost', colour: '--amber' },
      ])}
    </div>`}
  </section>`;
}

const STATES = ['available', 'active', 'scheduled', 'retryable', 'pending', 'completed', 'cancelled', 'discarded'];

export function Queue({ name }) {
  const { sample } = useStore();
  const settings = useAnswer(`admin/queues/${part(name)}`);
  const queue = sample.queues.find((each) => each.name === name);
  if (!queue) return html`<p class="problem" role="alert">The segment has no queue of this name.</p>`;
  const levels = levelsOf(queue, sample.segment.convention);
  const most = levels.reduce((max, [, jobs]) => Math.max(max, jobs), 1);
  const tenants = sample.tenants.filter((tenant) => tenant.queue === name);
  const configuration = settings.data?.configuration;
  const jobs = (state) => `#/jobs?queue=${part(name)}&state=${state}`;
  return html`
    <p><${StateBadge} state=${queue.state} /> ${queue.paused ? 'No job is handed out until it is resumed.' : `Order in force: ${orderInWords(queue.order)}.`}</p>
    ${may('admin') && html`<div class="actions">
      <${Pause} queue=${queue} />
      ${Object.keys(PURGED).filter((state) => (state === 'discarded' ? queue.dead_letters : queue.by_state[state]) > 0)
        .map((state) => html`<button class="danger" onClick=${() => purge(queue, state)}>Purge: ${PURGED[state]}</button>`)}
    </div>`}
    <dl class="tiles">
      <${Tile} name="waiting" value=${depthOf(queue)} note=${bytes(queue.size_bytes)} />
      <${Tile} name="pressure" value=${queue.max_depth || queue.max_size_bytes ? percent(queue.pressure) : 'no bound'} />
      <${Tile} name="oldest" value=${queue.depth ? duration(queue.oldest_age_ms) : '–'} />
      <${Tile} name="in" value=${rate(rateOf('enqueued', name))} />
      <${Tile} name="handed out" value=${rate(rateOf('dispatched', name))} />
      <${Tile} name="done" value=${rate(rateOf('completed', name))} />
      <${Tile} name="waited, last minute" value=${queue.wait.count ? duration(queue.wait.p50_ms) : '–'} note=${queue.wait.count ? `1 % longer than ${duration(queue.wait.p99_ms)}` : ''} />
      <${Tile} name="ran, last minute" value=${queue.run.count ? duration(queue.run.p50_ms) : '–'} note=${queue.run.count ? `1 % longer than ${duration(queue.run.p99_ms)}` : ''} />
    </dl>
    <${Past} queue=${name} />
    <${Table} caption="Jobs now in the segment, by state" rows=${STATES} id=${(state) => state} columns=${[
      { head: 'State', cell: (state) => html`<${StateBadge} state=${state} />` },
      { head: 'Jobs', right: true, cell: (state) => html`<a href=${jobs(state)} aria-label=${`${number(queue.by_state[state])} ${state} jobs`}>${number(queue.by_state[state])}</a>` },
    ]} />
    <${Table} caption="Available jobs by priority, best first" rows=${levels} id=${([level]) => level} empty="No job is available." columns=${[
      { head: 'Priority', cell: ([level]) => priority(level, sample.segment.convention) },
      { head: 'Jobs', cell: ([, jobs]) => html`<${Bar} share=${jobs / most} label=${number(jobs)} />` },
    ]} />
    ${tenants.length > 0 && html`<p><a href=${`#/tenants?queue=${part(name)}`}>${number(tenants.length)} tenants</a> have jobs in it.</p>`}
    <${Table} caption="Since the segment was made" rows=${Object.entries(queue.totals)} id=${([counter]) => counter} columns=${[
      { head: 'What', cell: ([counter]) => counter },
      { head: 'Jobs', right: true, cell: ([, n]) => number(n) },
      { head: 'Now', right: true, cell: ([counter]) => rate(rateOf(counter, name)) },
    ]} />
    <h2>Settings</h2>
    <${Pending} answer=${settings} />
    ${configuration && html`<${Json} value=${configuration} label="Settings of the queue" />`}`;
}
