// SPDX-License-Identifier: Apache-2.0
import { call, part } from '../api.js';
import { html } from '../html.js';
import { ask, Foreign, Moment, Pending, QueueLink, StateBadge, Table } from '../parts.js';
import { act, may, now, useAnswer } from '../store.js';
import { distance } from '../words.js';

const path = (name) => `cron/${part(name)}`;

async function trigger(cron) {
  const yes = await ask({ title: `Trigger ${cron.name}?`, action: 'Trigger', text: 'Its job is enqueued now, beside its times.' });
  if (yes) act(() => call(`${path(cron.name)}/trigger`, { method: 'POST' }), (reply) => `${cron.name} was triggered${reply?.job_id ? `: job ${reply.job_id}` : ''}.`);
}

const enable = (name, enabled) => () => call(path(name), { method: 'PATCH', body: { enabled } });
async function toggle(cron) {
  const on = cron.enabled !== false;
  const yes = await ask({
    title: on ? `Stop ${cron.name}?` : `Start ${cron.name}?`, action: on ? 'Stop' : 'Start', danger: on,
    text: on ? 'It enqueues nothing until it is started again.' : 'It enqueues its job at its next time.',
  });
  if (yes)
    act(enable(cron.name, !on), `${cron.name} is ${on ? 'stopped' : 'started'}.`, {
      action: enable(cron.name, on), done: `${cron.name} is ${on ? 'started' : 'stopped'} again.`,
    });
}

async function remove(cron) {
  const yes = await ask({ title: `Delete ${cron.name}?`, action: 'Delete', danger: true, text: 'Its jobs that wait or run go on. This cannot be undone.' });
  if (yes) act(() => call(path(cron.name), { method: 'DELETE' }), `${cron.name} is deleted.`);
}

const queueOf = (cron) => cron.queue ?? cron.options?.queue ?? cron.job_template?.options?.queue ?? cron.job_template?.queue ?? 'default';

export function Crons() {
  const answer = useAnswer('cron', { always: true });
  if (answer.problem?.status === 422) return html`<p class="quiet">This gateway offers no cron jobs.</p>`;
  const rows = answer.data?.crons ?? answer.data?.items ?? [];
  return html`
    <${Pending} answer=${answer} />
    <${Table} caption="Cron jobs" rows=${rows} id=${(cron) => cron.name} empty=${answer.data ? 'No cron job is set up.' : '…'} columns=${[
      { head: 'Name', by: (cron) => cron.name, cell: (cron) => html`<${Foreign} text=${cron.name} />` },
      { head: 'State', cell: (cron) => html`<${StateBadge} state=${cron.enabled === false ? 'stopped' : 'running'} />` },
      { head: 'When', cell: (cron) => html`<span class="mono"><${Foreign} text=${cron.expression ?? cron.cron ?? cron.schedule} /></span> ${cron.timezone}` },
      { head: 'Next', by: (cron) => cron.next_run_at ?? '', cell: (cron) => (cron.next_run_at && cron.enabled !== false ? html`<${Moment} time=${cron.next_run_at} /> <small class="short">${distance(cron.next_run_at, now())}</small>` : '–') },
      { head: 'Last', cell: (cron) => (cron.last_run_at ? distance(cron.last_run_at, now()) : '–') },
      { head: 'Type', cell: (cron) => html`<${Foreign} text=${cron.type ?? cron.job_template?.type} />` },
      { head: 'Queue', cell: (cron) => html`<${QueueLink} name=${queueOf(cron)} />` },
      { head: 'If it still runs', cell: (cron) => cron.overlap_policy ?? 'skip' },
      ...(may('admin') ? [{ head: 'Actions', cell: (cron) => html`
        <button onClick=${() => trigger(cron)} aria-label=${`Trigger ${cron.name}`}>Trigger</button>
        <button onClick=${() => toggle(cron)} aria-label=${`${cron.enabled === false ? 'Start' : 'Stop'} ${cron.name}`}>${cron.enabled === false ? 'Start' : 'Stop'}</button>
        <button class="danger" onClick=${() => remove(cron)} aria-label=${`Delete ${cron.name}`}>Delete</button>` }] : []),
    ]} />`;
}
