// SPDX-License-Identifier: Apache-2.0
//
// Workflows as graphs that go on by themselves, and cron jobs with their times.
'use strict';
const assert = require('node:assert');
const { after, before, test } = require('node:test');
const { Segment, answer, closeBrowser, eventually, open, openBrowser, picture, show, violations } = require('./board.js');

let segment;
let offered; // by the manifest
before(async () => {
  await openBrowser();
  segment = await Segment.open();
  offered = (await (await fetch(`${segment.url}/ojs/manifest`)).json()).capabilities;
});
after(async () => {
  await segment.close();
  await closeBrowser();
});

async function created(body) {
  const reply = await segment.call('POST', 'workflows', body);
  assert.strictEqual(reply.status, 201, JSON.stringify(reply.body));
  return reply.body.workflow.id;
}
async function fetched(queue) {
  return eventually(async () => (await segment.call('POST', 'workers/fetch', { queues: [queue] })).body.jobs[0], `a job of ${queue}`);
}
const steps = (page) => page.getByRole('region', { name: 'Steps' }).locator('tbody tr');

test('dashboard_http_shows_a_workflow_as_a_graph_that_goes_on', async () => {
  assert.ok(offered.workflows, 'the manifest offers none');
  const options = { queue: 'flow' };
  const id = await created({
    name: 'order', steps: [
      { id: 'pay', type: 'order.pay', args: [], options },
      { id: 'pack', type: 'order.pack', args: [], options, depends_on: ['pay'] },
      { id: 'bill', type: 'order.bill', args: [], options, depends_on: ['pay'] },
      { id: 'send', type: 'order.send', args: [], options, depends_on: ['pack', 'bill'] },
    ],
  });
  const page = await open(segment.url, { bypassCSP: true, reducedMotion: 'reduce' });
  await show(page, 'workflows', 'Workflows');
  await page.getByText('0 of 4').waitFor();
  await page.getByText('order', { exact: true }).waitFor();
  await page.getByRole('link', { name: id }).click();
  await page.getByRole('heading', { level: 1, name: `Workflows: ${id}` }).waitFor();
  await page.getByText('0 of 4').waitFor();
  assert.strictEqual(await page.locator('.graph .step').count(), 4);
  assert.strictEqual(await page.locator('.graph .edge').count(), 4);
  assert.strictEqual(await steps(page).nth(3).locator('td').nth(3).innerText(), 'pack, bill');
  await segment.call('POST', 'workers/ack', { job_id: (await fetched('flow')).id, result: 1 });
  await page.locator('.graph .step.completed').waitFor();
  await page.getByText('1 of 4').waitFor();
  await picture(page, 'workflow');
  assert.deepStrictEqual(await violations(page), []);
  for (let n = 0; n < 3; n++) await segment.call('POST', 'workers/ack', { job_id: (await fetched('flow')).id });
  await page.getByText('4 of 4').waitFor();
  assert.strictEqual(await page.getByRole('button', { name: 'Cancel' }).count(), 0);
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_shows_parts_within_parts', async () => {
  assert.ok(offered.workflows, 'the manifest offers none');
  const options = { queue: 'nested' };
  const job = (type) => ({ type, args: [], options });
  const id = await created({
    type: 'chain', name: 'nested', steps: [
      job('nest.first'), { type: 'batch', jobs: [job('nest.a'), job('nest.b')], callbacks: { on_success: job('nest.good') } }, job('nest.last'),
    ],
  });
  const page = await open(segment.url);
  await show(page, `workflows/${id}`, `Workflows: ${id}`);
  await eventually(async () => (await steps(page).count()) === 5, 'five jobs');
  const after = await steps(page).locator('td:nth-child(4)').allInnerTexts();
  assert.deepStrictEqual(after, ['–', 'nest.first', 'nest.first', 'nest.a, nest.b', 'nest.a, nest.b, on_success: nest.good']);
  await page.context().close();
});

test('dashboard_http_cancels_a_workflow', async () => {
  assert.ok(offered.workflows, 'the manifest offers none');
  const id = await created({ type: 'chain', steps: [1, 2].map((n) => ({ type: 'stop.it', args: [n], options: { queue: 'halt' } })) });
  const page = await open(segment.url);
  await show(page, `workflows/${id}`, `Workflows: ${id}`);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await answer(page, 'Leave it');
  assert.strictEqual((await segment.call('GET', `workflows/${id}`)).body.state, 'running');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await answer(page, 'Cancel it');
  await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' });
  assert.strictEqual((await segment.call('GET', `workflows/${id}`)).body.state, 'cancelled');
  await page.context().close();
});

test('dashboard_http_cron_jobs_are_triggered_stopped_and_deleted', async () => {
  assert.ok(offered.cron_jobs, 'the manifest offers none');
  const made = await segment.call('POST', 'cron', { name: 'nightly', expression: '30 4 29 2 *', timezone: 'UTC', type: 'report.night', args: [], options: { queue: 'night' } });
  assert.strictEqual(made.status, 201, JSON.stringify(made.body));
  const page = await open(segment.url, { bypassCSP: true, reducedMotion: 'reduce' });
  await show(page, 'cron', 'Cron');
  await page.getByText('30 4 29 2 *').waitFor();
  await page.getByText(/\d{4}-\d\d-\d\d 04:30:00/).waitFor();
  await picture(page, 'cron');
  assert.deepStrictEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Trigger nightly' }).click();
  await answer(page, 'Trigger');
  await page.getByText(/nightly was triggered: job/).waitFor();
  const { body } = await segment.call('GET', 'queues/night/stats');
  assert.strictEqual(body.queue.available, 1);
  await page.getByRole('button', { name: 'Stop nightly' }).click();
  await answer(page, 'Stop');
  await page.getByRole('button', { name: 'Start nightly' }).waitFor();
  assert.strictEqual((await segment.call('GET', 'cron/nightly')).body.cron.enabled, false);
  await page.getByText('nightly is stopped.').waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('button', { name: 'Stop nightly' }).waitFor();
  assert.strictEqual((await segment.call('GET', 'cron/nightly')).body.cron.enabled, true);
  assert.strictEqual((await segment.call('PATCH', 'cron/nightly', { enabled: false })).status, 200);
  await page.getByRole('button', { name: 'Start nightly' }).click();
  await answer(page, 'Leave it');
  assert.strictEqual((await segment.call('GET', 'cron/nightly')).body.cron.enabled, false);
  await page.getByRole('button', { name: 'Start nightly' }).click();
  await answer(page, 'Start');
  await page.getByText('nightly is started.').waitFor();
  await page.getByRole('button', { name: 'Stop nightly' }).waitFor();
  assert.strictEqual((await segment.call('GET', 'cron/nightly')).body.cron.enabled, true);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('button', { name: 'Start nightly' }).waitFor();
  assert.strictEqual((await segment.call('GET', 'cron/nightly')).body.cron.enabled, false);
  await page.getByRole('button', { name: 'Delete nightly' }).click();
  await answer(page, 'Delete');
  await page.getByText('No cron job is set up.').waitFor();
  assert.strictEqual((await segment.call('GET', 'cron/nightly')).status, 404);
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});
