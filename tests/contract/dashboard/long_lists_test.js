// SPDX-License-Identifier: Apache-2.0
//
// Lists and graphs that are longer than what the page draws at once: all of it can be reached, and the page says how much
// there is.
'use strict';
const assert = require('node:assert');
const { after, before, test } = require('node:test');
const { Segment, closeBrowser, eventually, open, openBrowser, show, violations } = require('./board.js');

let segment;
before(async () => {
  await openBrowser();
  segment = await Segment.open({ broker: ['--slots', '16384', '--max-queues', '256'] });
});
after(async () => {
  await segment.close();
  await closeBrowser();
});

async function accepted(method, what, body) {
  const reply = await segment.call(method, what, body);
  assert.ok(reply.status < 300, `${what}: ${reply.status} ${JSON.stringify(reply.body)}`);
  return reply.body;
}
const rows = (page, name) => page.getByRole('region', { name, exact: true }).locator('tbody tr');
const first = async (page, name) => (await rows(page, name).first().locator('td, th').first().innerText()).trim();

/** The list has 120 rows in three parts; `begins` are the first cells of two of them. */
async function inParts(page, name, begins) {
  const way = page.getByRole('navigation', { name: `Parts of: ${name}` });
  await way.getByText('1 to 50 of 120').waitFor();
  assert.strictEqual(await rows(page, name).count(), 50);
  assert.strictEqual(await first(page, name), begins[0]);
  assert.strictEqual(await way.getByRole('button', { name: 'Previous' }).isDisabled(), true);
  await way.getByRole('button', { name: 'Next' }).click();
  await way.getByText('51 to 100 of 120').waitFor();
  await way.getByRole('button', { name: 'Next' }).click();
  await way.getByText('101 to 120 of 120').waitFor();
  assert.strictEqual(await rows(page, name).count(), 20);
  assert.strictEqual(await first(page, name), begins[1]);
  assert.strictEqual(await way.getByRole('button', { name: 'Next' }).isDisabled(), true);
  await way.getByRole('button', { name: 'Previous' }).click();
  await way.getByText('51 to 100 of 120').waitFor();
  await way.getByRole('button', { name: 'Previous' }).click();
  await way.getByText('1 to 50 of 120').waitFor();
}
const numbered = (name) => Array.from({ length: 120 }, (_, n) => `${name}-${String(n).padStart(3, '0')}`);

test('dashboard_http_draws_long_lists_in_parts', async () => {
  const queues = numbered('queue');
  segment.enqueue(...queues.map((queue) => ({ queue })));
  const { jobs } = await accepted('POST', 'workers/fetch', { queues, count: 100 });
  assert.strictEqual(jobs.length, 100);
  assert.strictEqual((await accepted('POST', 'workers/fetch', { queues, count: 100 })).jobs.length, 20);
  segment.enqueue(...queues.map((queue) => ({ queue })));
  for (const key of numbered('limit')) await accepted('PUT', `rate-limits/${key}`, { concurrency: 1 });
  for (const name of numbered('cron')) await accepted('POST', 'cron', { name, expression: '30 4 * * *', timezone: 'UTC', type: 'test.cron', args: [], options: { queue: 'queue-000' } });
  for (const worker_id of numbered('worker')) await accepted('POST', 'workers/register', { worker_id, queues: ['queue-000'] });
  await accepted('PUT', 'admin/pools/wide', { queues, strategy: 'round-robin' });
  const page = await open(segment.url, { bypassCSP: true, reducedMotion: 'reduce' });
  await show(page, 'limits', 'Limits');
  await page.getByText('120 of 120 limits').waitFor();
  await inParts(page, 'Limits', ['limit-000', 'limit-100']);
  assert.deepStrictEqual(await violations(page), []);
  // A filter that leaves less than a part needs no way through it, also from the last part.
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByLabel('Key contains').fill('-05');
  await page.getByText('10 of 120 limits').waitFor();
  assert.strictEqual(await rows(page, 'Limits').count(), 10);
  assert.strictEqual(await page.getByRole('navigation', { name: 'Parts of: Limits' }).count(), 0);
  await page.getByLabel('Key contains').fill('none');
  await page.getByText('No limit has this in its key.').waitFor();
  await show(page, 'queues', 'Queues');
  await inParts(page, 'Queues', ['queue-000', 'queue-100']);
  // All of the list is sorted, not what is drawn of it.
  await page.getByRole('button', { name: 'Queue', exact: true }).click();
  await eventually(async () => (await first(page, 'Queues')) === 'queue-119', 'the last queue is the first');
  await show(page, 'waits', 'Waits');
  await inParts(page, 'How long jobs waited', ['queue-000', 'queue-100']);
  await inParts(page, 'Available jobs by priority', ['queue-000', 'queue-100']);
  await show(page, 'workers', 'Workers');
  await inParts(page, 'Registered workers', ['worker-000', 'worker-100']);
  // Each part of a pool says whose it is.
  await inParts(page, 'Pools and their queues', ['wide', 'wide']);
  await show(page, 'cron', 'Cron');
  await inParts(page, 'Cron jobs', ['cron-000', 'cron-100']);
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

const step = (id, more) => ({ id, type: `test.${id}`, args: [], options: { queue: 'flow' }, ...more });

test('dashboard_http_draws_the_first_steps_of_a_large_workflow', async () => {
  const names = Array.from({ length: 60 }, (_, n) => `a${n}`);
  const { id } = (await accepted('POST', 'workflows', {
    name: 'large', steps: [...names.map((name) => step(name)), ...Array.from({ length: 60 }, (_, n) => step(`b${n}`, { depends_on: names }))],
  })).workflow;
  const page = await open(segment.url);
  await show(page, `workflows/${id}`, `Workflows: ${id}`);
  // 40 of the second half are among the first 100; each waits for 60.
  await page.getByText('Drawn are the first 100 steps of 120, and 500 of the 2,400 arrows between them. The table below lists all.').waitFor();
  assert.strictEqual(await page.locator('.graph .step').count(), 100);
  assert.strictEqual(await page.locator('.graph .edge').count(), 500);
  await inParts(page, 'Steps', ['a0', 'b40']);
  await page.getByRole('button', { name: 'Next of: Steps' }).click();
  await page.getByText('51 to 100 of 120').waitFor();
  assert.strictEqual(await rows(page, 'Steps').nth(10).locator('td').nth(3).innerText(), 'a0, a1, a2, a3, a4, a5 and 54 more');
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_pages_workflows_and_filters_them_by_state', async () => {
  for (let n = 0; n < 60; n++) await accepted('POST', 'workflows', { name: `paged-${n}`, steps: [step('only')] });
  const { workflows } = await accepted('GET', 'workflows?limit=1000');
  const gone = workflows.filter(({ name }) => ['paged-1', 'paged-2'].includes(name));
  for (const { id } of gone) await accepted('DELETE', `workflows/${id}`);
  const page = await open(segment.url);
  await show(page, 'workflows', 'Workflows');
  const all = workflows.length;
  await page.getByText(`1 to 50 of ${all}`).waitFor();
  const ids = () => rows(page, 'Workflows').locator('td:first-child').allInnerTexts();
  assert.deepStrictEqual(await ids(), workflows.slice(0, 50).map(({ id }) => id));
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByText(`51 to ${all} of ${all}`).waitFor();
  assert.deepStrictEqual(await ids(), workflows.slice(50).map(({ id }) => id));
  await page.getByLabel('State').selectOption('cancelled');
  await page.getByText('1 to 2 of 2').waitFor();
  assert.deepStrictEqual((await ids()).sort(), gone.map(({ id }) => id).sort());
  await page.getByLabel('State').selectOption('failed');
  await page.getByText('No workflow is in this state.').waitFor();
  await page.getByLabel('State').selectOption('all');
  await page.getByText(`1 to 50 of ${all}`).waitFor();
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});
