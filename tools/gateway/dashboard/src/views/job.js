// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, callExact, listen, part } from '../api.js';
import { html } from '../html.js';
import { ask, Bar, Foreign, Json, Moment, Pending, QueueLink, StateBadge, Table, Tile } from '../parts.js';
import { act, may, now, touched, useAnswer, useStore } from '../store.js';
import { distance, duration, number, priority } from '../words.js';

const TERMINAL = ['completed', 'cancelled', 'discarded'];
const path = (id) => `admin/jobs/${part(id)}`;

export async function cancel(job) {
  const yes = await ask({
    title: 'Cancel this job?', action: 'Cancel it', danger: true,
    text: job.state === 'active' ? 'Its worker is asked to stop. This cannot be undone.' : 'It will not run. This cannot be undone.',
  });
  if (yes) act(() => call(`${path(job.id)}/cancel`, { method: 'POST' }), 'The job is cancelled.');
}

export async function retry(job) {
  const dead = job.state === 'discarded';
  const yes = await ask({
    title: dead ? 'Retry this dead letter?' : 'Run this job now?', action: dead ? 'Retry' : 'Run now',
    text: dead ? 'It becomes available again with all its attempts before it.' : 'It becomes available at once instead of waiting for its time.',
  });
  if (yes) act(() => call(`${path(job.id)}/retry`, { method: 'POST' }), 'The job is available again.');
}

export async function remove(job) {
  const yes = await ask({ title: 'Remove this dead letter?', action: 'Remove', danger: true, text: 'This cannot be undone.' });
  if (yes) act(() => call(`admin/dead-letter/${part(job.id)}`, { method: 'DELETE' }), 'The dead letter is gone.');
}

const change = (id, level) => () => call(path(id), { method: 'PATCH', body: { priority: level } });
async function reprioritise(job) {
  const answer = await ask({
    title: 'Change the priority?', action: 'Change', text: 'It moves to the end of its new level.',
    fields: [{ name: 'priority', label: 'Priority', type: 'number', step: 1, value: job.priority }],
  });
  const level = Number(answer?.priority);
  if (answer && level !== job.priority)
    act(change(job.id, level), `The priority is ${level}.`, {
      action: change(job.id, job.priority), done: `The priority is ${job.priority} again.`,
    });
}

const TIMES = ['created_at', 'enqueued_at', 'scheduled_at', 'started_at', 'next_attempt_at', 'completed_at', 'cancelled_at',
  'discarded_at', 'expires_at', 'result_expires_at'];
const SHOWN = new Set([...TIMES, 'id', 'type', 'queue', 'state', 'priority', 'attempt', 'max_attempts', 'args', 'meta',
  'result', 'error', 'errors', 'progress', 'retry', 'retry_policy', 'metadata', 'specversion', 'worker_id', 'workflow_id',
  'result_ttl', 'result_stored_at', 'result_size_bytes', 'result_pruned']);

const ENDS = new Set(['completed', 'cancelled', 'discarded']);

/** What happens to the job while the page looks; each event asks for the job again. The stream ends with the job, and begins
 * again when that is retried. */
function useHappenings(id, ended) {
  const [events, setEvents] = useState([]);
  const [lives, setLives] = useState(0);
  const before = useRef(false);
  useEffect(() => {
    if (before.current && !ended) setLives((old) => old + 1);
    before.current = ended;
  }, [ended]);
  useEffect(() => {
    const end = new AbortController();
    listen(`jobs/${part(id)}/events`, {
      signal: end.signal,
      tell: ({ data }) => {
        const event = JSON.parse(data);
        if (event.id) setEvents((old) => [event, ...old].slice(0, 100));
        if (ENDS.has(event.to)) end.abort();
        touched();
      },
    });
    return () => end.abort();
  }, [id, lives]);
  return events;
}

function Progress({ job }) {
  const answer = useAnswer(job.state === 'active' ? `jobs/${part(job.id)}/progress` : null, { always: true });
  if (!answer.data || answer.data.progress === null) return null;
  return html`<p>Progress: <${Bar} share=${answer.data.progress} /> ${answer.data.message && html`<${Foreign} text=${answer.data.message} />`}</p>`;
}

export function Job({ name }) {
  const { sample } = useStore();
  const answer = useAnswer(path(name), { ask: callExact });
  const job = answer.data;
  const events = useHappenings(name, ENDS.has(job?.state));
  if (answer.problem?.status === 404)
    return html`<p class="problem" role="alert">The segment does not have this job: it may have given its room to another, or never been here.</p>`;
  if (!job) return html`<${Pending} answer=${answer} />`;
  const errors = [...(job.errors ?? [])].reverse();
  const ended = job.completed_at ?? job.cancelled_at ?? job.discarded_at;
  const dead = job.state === 'discarded';
  const waits = ['available', 'scheduled'].includes(job.state);
  const others = Object.fromEntries(Object.entries(job).filter(([member]) => !SHOWN.has(member)));
  return html`
    <p><${StateBadge} state=${job.state} /> <b><${Foreign} text=${job.type} /></b> in <${QueueLink} name=${job.queue} />
      ${job.workflow_id && html` · part of workflow <a class="mono" href=${`#/workflows/${part(job.workflow_id)}`}>${job.workflow_id}</a>`}
      ${job.worker_id && html` · held by <${Foreign} text=${job.worker_id} />`}</p>
    <${Pending} answer=${answer} />
    ${may('admin') && html`<div class="actions">
      ${!TERMINAL.includes(job.state) && html`<button class="danger" onClick=${() => cancel(job)}>Cancel</button>`}
      ${['retryable', 'scheduled'].includes(job.state) && html`<button onClick=${() => retry(job)}>Run now</button>`}
      ${dead && html`<button onClick=${() => retry(job)}>Retry</button><button class="danger" onClick=${() => remove(job)}>Remove</button>`}
      ${waits && html`<button onClick=${() => reprioritise(job)}>Priority …</button>`}
    </div>`}
    <dl class="tiles">
      <${Tile} name="priority" value=${priority(job.priority, sample.segment.convention)} />
      <${Tile} name="attempt" value=${`${job.attempt} of ${job.max_attempts ?? '–'}`} />
      <${Tile} name="waited" value=${job.started_at ? duration(Date.parse(job.started_at) - Date.parse(job.enqueued_at ?? job.created_at)) : '–'} />
      <${Tile} name="ran" value=${job.started_at ? duration(Date.parse(ended ?? now()) - Date.parse(job.started_at)) : '–'} />
    </dl>
    <${Progress} job=${job} />
    <h2>Arguments</h2><${Json} value=${job.args} label="Arguments" />
    ${job.meta && Object.keys(job.meta).length > 0 && html`<h2>Meta</h2><${Json} value=${job.meta} label="Meta" />`}
    ${job.result !== undefined && html`<h2>Result</h2><${Json} value=${job.result} label="Result" />`}
    ${job.result_pruned && html`<h2>Result</h2><p class="quiet">It was kept for a time that is over.</p>`}
    <${Table} caption="Errors, the latest first" rows=${errors} id=${(error) => `${error.attempt} ${error.occurred_at} ${error.code}`} empty="No attempt has failed." columns=${[
      { head: 'Attempt', right: true, cell: (error) => number(error.attempt) },
      { head: 'When', cell: (error) => html`<${Moment} time=${error.occurred_at} />` },
      { head: 'Code', cell: (error) => html`<${Foreign} text=${error.code ?? error.type} />` },
      { head: 'Message', cell: (error) => html`<${Foreign} text=${error.message ?? ''} />
        ${error.details !== undefined && html`<details><summary>Details</summary><${Json} value=${error.details} label="Details of the error" /></details>`}` },
    ]} />
    <${Table} caption="Times" rows=${TIMES.filter((time) => job[time])} id=${(time) => time} columns=${[
      { head: 'What', cell: (time) => time.replace('_at', '').replace('_', ' ') },
      { head: 'When', cell: (time) => html`<${Moment} time=${job[time]} />` },
      { head: 'Seen from now', right: true, cell: (time) => distance(job[time], now()) },
    ]} />
    <${Table} caption="Events since this page was opened" rows=${events} id=${(event) => event.id} empty="None yet." columns=${[
      { head: 'When', cell: (event) => html`<${Moment} time=${event.time} />` },
      { head: 'What', cell: (event) => event.type },
    ]} />
    <h2>Retry policy</h2><${Json} value=${job.retry_policy} label="Retry policy" />
    ${Object.keys(others).length > 0 && html`<h2>Everything else</h2><${Json} value=${others} label="Other members of the job" />`}`;
}
