// SPDX-License-Identifier: Apache-2.0
//
// What an operator changes on the page: after a question, with the scope for it, undone where that can be.
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const os = require('node:os');
const { after, before, test } = require('node:test');
const { Segment, answer, closeBrowser, eventually, open, openBrowser, picture, show, violations } = require('./board.js');

const READ = 'token-that-may-read-0001';
const ADMIN = 'token-of-an-operator-0002';
const OPERATOR = { Authorization: `Bearer ${ADMIN}` };
let segment;
let folder;
before(async () => {
  await openBrowser();
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ojs-shm-tokens-'));
  fs.writeFileSync(path.join(folder, 'tokens'), `${READ} read\n${ADMIN} admin\n`);
  segment = await Segment.open({ gateway: ['--token-file', path.join(folder, 'tokens')] });
});
after(async () => {
  await segment.close();
  await closeBrowser();
  fs.rmSync(folder, { recursive: true });
});

const operator = () => open(segment.url, { token: ADMIN });
const paused = async (queue) => (await segment.call('GET', `queues/${queue}`, undefined, OPERATOR)).body.queue.paused;
const dead = async (queue, n) => {
  const ids = segment.enqueue(...Array.from({ length: n }, () => ({ queue, retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } })));
  const worker = segment.work(queue, 'false');
  await eventually(() => ids.every((id) => segment.job(id).state === 'discarded'), `the jobs of ${queue} fail`);
  worker.kill();
  await worker.ended;
  return ids;
};

test('dashboard_http_asks_for_a_token_and_keeps_it_in_the_tab', async () => {
  const page = await open(segment.url, { bypassCSP: true });
  await page.getByLabel('Token of this gateway').waitFor();
  assert.deepStrictEqual(await violations(page), []);
  await page.getByLabel('Token of this gateway').fill('none of those that it knows');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByText('The gateway does not know this token.').waitFor();
  await picture(page, 'door');
  await page.getByLabel('Token of this gateway').fill(READ);
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  assert.strictEqual(await page.evaluate(() => document.cookie + JSON.stringify(localStorage).replace(/"ojs-shm-theme":"system"/, '')), '{}');
  await page.getByRole('button', { name: 'Leave' }).click();
  await page.getByLabel('Token of this gateway').waitFor();
  await page.context().close();
});

/** A worker that says who it is. With no further sign it would end after 30 s, and a slow machine needs longer. */
const enrolled = async (worker_id, queues) => {
  await segment.call('POST', 'workers/register', { worker_id, queues }, OPERATOR);
  await segment.call('POST', 'workers/beat', { worker_id, visibility_timeout_ms: 600_000 }, OPERATOR);
};

/** The names of the buttons of the view, without those that sort a table. */
const buttons = (page) => page.locator('main button:not(.sort)').evaluateAll((all) => all.map((each) => each.getAttribute('aria-label') ?? each.textContent.trim()));

test('dashboard_http_offers_a_read_token_no_change', async () => {
  const as = (method, what, body) => segment.call(method, what, body, OPERATOR);
  const [letter] = await dead('seen', 1);
  const [waiting, later, unique] = segment.enqueue({ queue: 'seen' }, { queue: 'seen', scheduled_at: '2099-01-01T00:00:00Z' }, { queue: 'seen', type: 'once', unique: { keys: ['type'] } });
  segment.enqueue({ queue: 'halted' });
  segment.native(['queue', 'pause', 'halted']);
  const cron = { expression: '0 4 * * *', timezone: 'UTC', type: 'seen.night', args: [], options: { queue: 'seen' } };
  for (const name of ['goes', 'rests']) assert.strictEqual((await as('POST', 'cron', { name, ...cron })).status, 201);
  await as('PATCH', 'cron/rests', { enabled: false });
  const { id: flow } = (await as('POST', 'workflows', { name: 'seen', steps: [{ id: 'a', type: 'seen.step', args: [], options: { queue: 'seen' } }] })).body.workflow;
  await as('PUT', 'rate-limits/held', { concurrency: 2 });
  for (const name of ['busy', 'calm']) await enrolled(name, ['seen']);
  await as('POST', 'admin/workers/calm/quiet');
  // What the operator sees and the reader does not, and what both see because it changes nothing.
  const views = [
    ['', 'Overview', []],
    ['queues', 'Queues', ['Pause seen', 'Resume halted']],
    ['queues/seen', 'Queues: seen', ['Pause seen', 'Purge: waiting now', 'Purge: scheduled', 'Purge: dead letters']],
    ['queues/halted', 'Queues: halted', ['Resume halted', 'Purge: waiting now']],
    ['workers', 'Workers', ['Quiet busy', 'Resume calm']],
    ['jobs', 'Jobs', ['Cancel all that match'], ['Show', 'Previous', 'Next']],
    [`jobs/${letter}`, /^Jobs: /, ['Retry', 'Remove']],
    [`jobs/${waiting}`, /^Jobs: /, ['Cancel', 'Priority …']],
    [`jobs/${later}`, /^Jobs: /, ['Cancel', 'Run now', 'Priority …']],
    ['dead', 'Dead letters', ['Retry all shown', 'Remove all shown', `Retry ${letter}`, `Remove ${letter}`], ['Previous', 'Next']],
    ['unique', 'Unique jobs', [], ['Previous', 'Next'], unique],
    ['limits', 'Limits', ['Set held', 'Take back held']],
    ['cron', 'Cron', ['Trigger goes', 'Stop goes', 'Delete goes', 'Trigger rests', 'Start rests', 'Delete rests']],
    ['workflows', 'Workflows', [], ['Previous', 'Next'], flow],
    [`workflows/${flow}`, /^Workflows: /, ['Cancel']],
    ['events', 'Events', [], ['Hold']],
    ['waits', 'Waits', []],
    ['tenants', 'Tenants', []],
  ];
  const operators = await operator();
  const readers = await open(segment.url, { token: READ });
  for (const [view, heading, changes, harmless = [], shown] of views) {
    await show(operators, view, heading);
    await eventually(async () => {
      const seen = await buttons(operators);
      return [...changes, ...harmless].every((name) => seen.includes(name));
    }, `${view || 'overview'} offers ${changes}`);
    await show(readers, view, heading);
    for (const page of [operators, readers]) {
      await eventually(async () => !/Asking the gateway|^…$/m.test(await page.locator('main').innerText()), `${view} has its answer`);
      if (shown) await page.locator('main').getByText(shown).waitFor();
    }
    const rows = (page) => page.locator('main tbody tr').count();
    await eventually(async () => (await rows(readers)) === (await rows(operators)), `both see the same of ${view}`);
    assert.deepStrictEqual((await buttons(operators)).sort(), [...changes, ...harmless].sort(), view);
    assert.deepStrictEqual((await buttons(readers)).sort(), [...harmless].sort(), view);
  }
  for (const page of [operators, readers]) assert.deepStrictEqual(page.wrong, []), await page.context().close();
  // And what a page with that token would send is refused.
  const refused = await segment.call('POST', 'admin/queues/seen/pause', undefined, { Authorization: `Bearer ${READ}` });
  assert.strictEqual(refused.status, 403);
});

test('dashboard_http_pauses_after_a_question_and_undoes', async () => {
  segment.enqueue({ queue: 'stopped' });
  const page = await open(segment.url, { token: ADMIN, bypassCSP: true });
  await show(page, 'queues', 'Queues');
  await page.getByRole('button', { name: 'Pause stopped' }).click();
  await page.getByRole('dialog').waitFor();
  assert.deepStrictEqual(await violations(page), []);
  await picture(page, 'question');
  await answer(page, 'Leave it');
  assert.strictEqual(await paused('stopped'), false);
  await page.getByRole('button', { name: 'Pause stopped' }).click();
  await answer(page, 'Pause');
  await page.getByRole('button', { name: 'Resume stopped' }).waitFor();
  assert.strictEqual(await paused('stopped'), true);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('button', { name: 'Pause stopped' }).waitFor();
  assert.strictEqual(await paused('stopped'), false);
  await page.getByRole('button', { name: 'Pause stopped' }).click();
  await answer(page, 'Pause');
  await page.getByRole('button', { name: 'Resume stopped' }).click();
  await answer(page, 'Resume');
  await eventually(async () => (await paused('stopped')) === false, 'it runs again');
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_changes_the_priority_and_undoes', async () => {
  const [id] = segment.enqueue({ queue: 'moved', priority: 3 });
  const page = await operator();
  await show(page, `jobs/${id}`, `Jobs: ${id}`);
  await page.getByRole('button', { name: 'Priority …' }).click();
  await page.getByRole('dialog').getByLabel('Priority').fill('0');
  await answer(page, 'Change');
  await page.getByText('0 critical').waitFor();
  assert.strictEqual(segment.job(id).priority, 0);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('3 low').waitFor();
  assert.strictEqual(segment.job(id).priority, 3);
  // What the segment refuses is said, and nothing has changed.
  await page.getByRole('button', { name: 'Priority …' }).click();
  await page.getByRole('dialog').getByLabel('Priority').fill('300');
  await answer(page, 'Change');
  await page.getByText(/^Not done: .*255/).waitFor();
  assert.strictEqual(segment.job(id).priority, 3);
  await page.context().close();
});

test('dashboard_http_cancels_one_and_many_by_filter', async () => {
  const [one, ...many] = segment.enqueue(...Array.from({ length: 5 }, () => ({ queue: 'gone', type: 'gone.now' })));
  const [kept] = segment.enqueue({ queue: 'gone', type: 'kept.here' });
  const page = await operator();
  await show(page, `jobs/${one}`, `Jobs: ${one}`);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await answer(page, 'Cancel it');
  await page.getByText('cancelled', { exact: true }).first().waitFor();
  assert.strictEqual(segment.job(one).state, 'cancelled');
  await show(page, 'jobs?queue=gone&state=available', 'Jobs');
  await page.getByLabel('Type').fill('gone.*');
  await page.getByLabel('Type').press('Enter');
  await page.getByText('1 to 4 of 4').waitFor();
  await page.getByRole('button', { name: 'Cancel all that match' }).click();
  await answer(page, 'Cancel them');
  await page.getByText('4 of 4 jobs cancelled.').waitFor();
  await page.getByText('No job matches.').waitFor();
  assert.deepStrictEqual([...many, kept].map((id) => segment.job(id).state), ['cancelled', 'cancelled', 'cancelled', 'cancelled', 'available']);
  await page.context().close();
});

test('dashboard_http_retries_and_removes_dead_letters', async () => {
  const letters = await dead('letters', 4);
  const page = await operator();
  await show(page, 'dead?queue=letters', 'Dead letters');
  await page.getByRole('button', { name: `Retry ${letters[0]}` }).click();
  await answer(page, 'Retry');
  await eventually(() => segment.job(letters[0]).state === 'available', 'the first is available again');
  await page.getByRole('button', { name: `Remove ${letters[1]}` }).click();
  await answer(page, 'Remove');
  await page.getByRole('button', { name: `Remove ${letters[1]}` }).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Retry all shown' }).click();
  await answer(page, 'Retry all');
  await page.getByText('2 of 2 dead letters available again.').waitFor();
  await page.getByText('None.').waitFor();
  assert.deepStrictEqual(letters.slice(2).map((id) => segment.job(id).state), ['available', 'available']);
  await page.context().close();
});

test('dashboard_http_removes_all_dead_letters_that_are_shown', async () => {
  const gone = await dead('forgotten', 3);
  const [kept] = await dead('remembered', 1);
  const page = await operator();
  await show(page, 'dead?queue=forgotten', 'Dead letters');
  await page.getByRole('button', { name: 'Remove all shown' }).click();
  await page.getByRole('dialog').getByText('3 dead letters of forgotten are removed for good.').waitFor();
  await answer(page, 'Leave it');
  assert.deepStrictEqual(gone.map((id) => segment.job(id).state), ['discarded', 'discarded', 'discarded']);
  await page.getByRole('button', { name: 'Remove all shown' }).click();
  await answer(page, 'Remove all');
  await page.getByText('3 of 3 dead letters removed.').waitFor();
  await page.getByText('None.').waitFor();
  for (const id of gone) assert.strictEqual((await segment.call('GET', `admin/jobs/${id}`, undefined, OPERATOR)).status, 404);
  assert.strictEqual(segment.job(kept).state, 'discarded');
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_runs_a_job_before_its_time', async () => {
  const [later] = segment.enqueue({ queue: 'early', scheduled_at: '2099-01-01T00:00:00Z' });
  const [again] = segment.enqueue({ queue: 'again', retry: { max_attempts: 3, initial_interval: 'PT1H' } });
  assert.strictEqual((await segment.call('POST', 'workers/fetch', { queues: ['again'] }, OPERATOR)).body.jobs[0].id, again);
  await segment.call('POST', 'workers/nack', { job_id: again, error: { code: 'broken', message: 'it broke' } }, OPERATOR);
  const page = await operator();
  for (const [id, state] of [[later, 'scheduled'], [again, 'retryable']]) {
    assert.strictEqual(segment.job(id).state, state);
    await show(page, `jobs/${id}`, `Jobs: ${id}`);
    await page.getByRole('button', { name: 'Run now' }).click();
    await answer(page, 'Leave it');
    assert.strictEqual(segment.job(id).state, state);
    await page.getByRole('button', { name: 'Run now' }).click();
    await answer(page, 'Run now');
    await page.getByRole('button', { name: 'Run now' }).waitFor({ state: 'detached' });
    assert.strictEqual(segment.job(id).state, 'available');
  }
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_purges_a_queue_when_its_name_is_written', async () => {
  const ids = segment.enqueue(...Array.from({ length: 3 }, () => ({ queue: 'full.up' })));
  const page = await operator();
  await show(page, 'queues/full.up', 'Queues: full.up');
  await page.getByRole('button', { name: 'Purge: waiting now' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Queue').fill('fullxup');
  await dialog.getByRole('button', { name: 'Purge' }).click();
  assert.strictEqual(await dialog.isVisible(), true); // the name is another one
  await dialog.getByLabel('Queue').fill('full.up');
  await answer(page, 'Purge');
  await page.getByText('3 jobs of full.up are gone.').waitFor();
  assert.deepStrictEqual(ids.map((id) => segment.job(id).state), ['cancelled', 'cancelled', 'cancelled']);
  await page.context().close();
});

test('dashboard_http_purge_says_what_it_cannot_do', async () => {
  segment.enqueue({ queue: 'kept' });
  const purge = (body) => segment.call('DELETE', 'admin/queues/kept/jobs', body, OPERATOR);
  assert.strictEqual((await purge({ states: ['available'] })).status, 400);
  assert.strictEqual((await purge({ states: [], confirm: true })).status, 400);
  assert.strictEqual((await purge({ states: ['active'], confirm: true })).status, 400);
  assert.deepStrictEqual((await purge({ states: ['available'], older_than: 'PT1H', confirm: true })).body, { purged_count: 0, states: ['available'] });
  assert.strictEqual((await segment.call('DELETE', 'admin/queues/none/jobs', { states: ['available'], confirm: true }, OPERATOR)).status, 404);
});

test('dashboard_http_undoes_what_it_told_a_worker', async () => {
  await enrolled('w-told', ['q']);
  const told = async () => (await segment.workerOf('w-told', OPERATOR)).directive;
  const page = await operator();
  await show(page, 'workers', 'Workers');
  await page.getByRole('button', { name: 'Quiet w-told' }).click();
  await answer(page, 'Quiet');
  await page.getByText('w-told gets no more jobs.').waitFor();
  assert.strictEqual(await told(), 'quiet');
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('w-told gets jobs again.').waitFor();
  assert.strictEqual(await told(), 'running');
  await page.getByRole('button', { name: 'Quiet w-told' }).waitFor();
  await segment.call('POST', 'admin/workers/w-told/quiet', undefined, OPERATOR);
  await page.getByRole('button', { name: 'Resume w-told' }).click();
  await answer(page, 'Resume');
  await page.getByRole('button', { name: 'Quiet w-told' }).waitFor();
  assert.strictEqual(await told(), 'running');
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('button', { name: 'Resume w-told' }).waitFor();
  assert.strictEqual(await told(), 'quiet');
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_takes_a_limit_back', async () => {
  const bring = () => segment.enqueue({ queue: 'limited', rate_limit: { key: 'brought', concurrency: 3 } });
  bring();
  const limit = async () => {
    const { body } = await segment.call('GET', 'rate-limits/brought', undefined, OPERATOR);
    return [body.concurrency.limit ?? null, body.override];
  };
  assert.deepStrictEqual(await limit(), [3, false]);
  const page = await operator();
  await show(page, 'limits', 'Limits');
  const set = async (value) => {
    await page.getByRole('button', { name: 'Set brought' }).click();
    await page.getByRole('dialog').getByLabel('Active at once').fill(value);
    await answer(page, 'Set');
    await page.getByText(`0 of ${value}`, { exact: true }).waitFor();
    await page.getByRole('region', { name: 'Limits' }).locator('tr', { has: page.getByText('brought', { exact: true }) }).getByText('an operator').waitFor();
    assert.deepStrictEqual(await limit(), [Number(value), true]);
  };
  // The setting of jobs was overwritten; the next one brings it again.
  const asBrought = async () => {
    await page.getByText('brought has no limit until a job brings one.').last().waitFor();
    await page.getByRole('button', { name: 'Take back brought' }).waitFor({ state: 'detached' });
    assert.deepStrictEqual(await limit(), [null, false]);
    const cells = () => page.getByRole('region', { name: 'Limits' }).locator('tr', { has: page.getByText('brought', { exact: true }) }).locator('td').allInnerTexts();
    assert.strictEqual((await cells())[1], '0');
    bring();
    await eventually(async () => (await cells())[1] === '0 of 3', 'it is there again');
    assert.deepStrictEqual(await limit(), [3, false]);
  };
  await set('7');
  await page.getByRole('button', { name: 'Undo' }).click();
  await asBrought();
  await set('8');
  await page.getByRole('button', { name: 'Take back brought' }).click();
  await answer(page, 'Leave it');
  assert.deepStrictEqual(await limit(), [8, true]);
  await page.getByRole('button', { name: 'Take back brought' }).click();
  await answer(page, 'Take back');
  await asBrought();
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_quiets_a_worker_and_sets_a_limit', async () => {
  await enrolled('w-quiet', ['q']);
  await segment.call('PUT', 'rate-limits/gate', { concurrency: 3 }, OPERATOR);
  const page = await operator();
  await show(page, 'workers', 'Workers');
  await page.getByRole('button', { name: 'Quiet w-quiet' }).click();
  await answer(page, 'Quiet');
  // An earlier test has left another one quiet.
  const worker = page.getByRole('region', { name: 'Registered workers' }).locator('tr', { has: page.getByText('w-quiet', { exact: true }) });
  await worker.getByText('quiet', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await worker.getByText('running', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Quiet w-quiet' }).click();
  await answer(page, 'Quiet');
  // Also when the notice that offers to undo is gone.
  await page.getByRole('button', { name: 'Resume w-quiet' }).click();
  await answer(page, 'Resume');
  await page.getByRole('button', { name: 'Quiet w-quiet' }).waitFor();
  assert.strictEqual((await segment.workerOf('w-quiet', OPERATOR)).directive, 'running');
  await show(page, 'limits', 'Limits');
  await page.getByRole('button', { name: 'Set gate' }).click();
  // So slowly that new numbers come while it is typed.
  await page.getByRole('dialog').getByLabel('Active at once').fill('');
  await page.getByRole('dialog').getByLabel('Active at once').pressSequentially('10', { delay: 1200 });
  await answer(page, 'Set');
  await page.getByText('0 of 10').waitFor();
  await page.context().close();
});

test('dashboard_http_filters_sorts_and_pages', async () => {
  const ids = segment.enqueue(...Array.from({ length: 120 }, (_, n) => ({ queue: 'paged', type: n % 2 ? 'page.odd' : 'page.even', priority: n % 3, meta: { tenant_id: n < 10 ? 'few' : 'many' } })));
  const page = await operator();
  await show(page, 'jobs', 'Jobs');
  await page.getByLabel('Queue').selectOption('paged');
  await page.getByText('1 to 50 of 120').waitFor();
  await page.getByRole('link', { name: ids[119] }).waitFor();
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByText('51 to 100 of 120').waitFor();
  // A job that comes meanwhile moves no page that goes by a cursor.
  segment.enqueue({ queue: 'paged', type: 'page.even' });
  await page.getByText('51 to 100 of 121').waitFor();
  await page.getByRole('link', { name: ids[69], exact: true }).waitFor();
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByRole('link', { name: ids[0], exact: true }).waitFor();
  assert.strictEqual(await page.getByRole('button', { name: 'Next' }).isDisabled(), true);
  await page.getByRole('button', { name: 'Previous' }).click();
  await page.getByRole('link', { name: ids[69], exact: true }).waitFor();
  await page.getByLabel('Type').pressSequentially('page.odd', { delay: 200 });
  await page.getByLabel('Type').press('Enter');
  await page.getByText('1 to 50 of 60').waitFor();
  await page.getByLabel('Tenant').fill('few');
  await page.getByLabel('Tenant').press('Enter');
  await page.getByText('1 to 5 of 5').waitFor();
  await page.getByLabel('Order').selectOption('lowest priority number first');
  await eventually(async () => {
    const levels = await page.locator('tbody tr td:nth-child(5)').allInnerTexts();
    return levels.length === 5 && levels.join() === [...levels].sort().join();
  }, 'the levels rise');
  await page.getByLabel('State').selectOption('completed');
  await page.getByText('No job matches.').waitFor();
  await page.context().close();
});
