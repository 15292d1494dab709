// SPDX-License-Identifier: Apache-2.0
//
// A segment with 100,000 jobs: no task of the page's thread takes 100 ms of a processor, whatever a person does. The
// trace counts what the thread has used, so that a busy machine changes nothing.
'use strict';
const assert = require('node:assert');
const { after, before, test } = require('node:test');
const { Segment, closeBrowser, eventually, open, openBrowser, picture, show } = require('./board.js');

const JOBS = 100_000;
let segment;
before(async () => {
  await openBrowser();
  segment = await Segment.open({ broker: ['--slots', '131072', '--size', '256M'] });
});
after(async () => {
  await segment.close();
  await closeBrowser();
});

test('dashboard_http_stays_fluent_with_100000_jobs', async () => {
  segment.enqueue(...Array.from({ length: JOBS }, (_, n) => ({ type: `load.type-${n % 20}`, queue: `queue-${n % 50}`, priority: n % 5, args: [n], meta: { tenant_id: `tenant-${n % 500}` } })));
  segment.work('queue-0', 'true');
  const page = await open(segment.url);
  await page.getByText('100,000 ever').waitFor();
  const session = await page.context().newCDPSession(page);
  const events = [];
  session.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  await session.send('Tracing.start', { transferMode: 'ReportEvents', categories: 'toplevel,disabled-by-default-devtools.timeline,__metadata' });
  await show(page, 'queues', 'Queues');
  await page.getByText('50 of 50 queues').waitFor();
  await page.getByRole('button', { name: 'Waiting' }).click();
  await page.getByLabel('Name contains').pressSequentially('queue-4');
  await page.getByText('11 of 50 queues').waitFor();
  await show(page, 'jobs', 'Jobs');
  await page.getByText(/1 to 50 of \d{2,3},\d{3}/).waitFor();
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByText(/51 to 100 of/).waitFor();
  await page.getByLabel('Queue').selectOption('queue-7');
  await page.getByText('1 to 50 of 2,000').waitFor();
  await page.getByLabel('Order').selectOption('oldest first');
  await page.locator('tbody a.mono').first().click();
  await page.getByRole('region', { name: 'Arguments' }).waitFor();
  const lists = await page.evaluate(() => performance.getEntriesByType('resource').filter((each) => each.name.includes('admin/jobs?')).map((each) => each.duration.toFixed(0)));
  assert.ok(lists.length >= 4, `${lists.length} lists`);
  console.log(`the gateway's answers to ${lists.length} lists of jobs, ms: ${lists.join(' ')}`);
  await show(page, 'tenants', 'Tenants');
  await page.getByText('the 200 with most jobs are shown').waitFor();
  await page.getByLabel('Name contains').pressSequentially('nt-49');
  await show(page, 'waits', 'Waits');
  await show(page, 'events', 'Events');
  await show(page, '', 'Overview');
  await picture(page, 'overview_100000');
  const complete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve));
  await session.send('Tracing.end');
  await complete;
  const main = new Set(events.filter((each) => each.name === 'thread_name' && each.args.name === 'CrRendererMain').map((each) => `${each.pid} ${each.tid}`));
  const tasks = events.filter((each) => /RunTask/.test(each.name) && each.tdur !== undefined && main.has(`${each.pid} ${each.tid}`)).map((each) => each.tdur / 1000);
  assert.ok(tasks.length > 100, `${tasks.length} tasks in the trace`);
  const longest = Math.max(...tasks);
  console.log(`longest task: ${longest.toFixed(1)} ms of ${tasks.length}`);
  assert.ok(longest < 100, `a task took ${longest.toFixed(1)} ms`);
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});
