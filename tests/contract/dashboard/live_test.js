// SPDX-License-Identifier: Apache-2.0
//
// What happens in the segment is on the page by itself, also after the gateway was away.
'use strict';
const assert = require('node:assert');
const { after, before, test } = require('node:test');
const { Segment, closeBrowser, eventually, heightOf, open, openBrowser, picture, show } = require('./board.js');

let segment;
before(async () => {
  await openBrowser();
  segment = await Segment.open();
});
after(async () => {
  await segment.close();
  await closeBrowser();
});

const tile = (page, name) => page.locator('.tile', { has: page.getByText(name, { exact: true }) }).locator('dd');
const says = (page, name, text) => eventually(async () => (await tile(page, name).innerText()).startsWith(text), `${name} says ${text}`);

test('dashboard_http_numbers_are_live', async () => {
  const page = await open(segment.url);
  await says(page, 'waiting', '0');
  segment.enqueue(...Array.from({ length: 7 }, () => ({ queue: 'live' })));
  await says(page, 'waiting', '7');
  await page.getByRole('link', { name: 'live' }).waitFor();
  segment.native(['queue', 'pause', 'live']);
  await page.getByText('paused').first().waitFor();
  segment.native(['queue', 'resume', 'live']);
  segment.work('live', 'true');
  await says(page, 'waiting', '0');
  await eventually(async () => (await tile(page, 'done').innerText()).includes('7 ever'), 'all seven are done');
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_charts_know_the_past', async () => {
  // A page that is opened now shows what was before it.
  await eventually(async () => (await segment.call('GET', 'admin/stats/history?period=5s')).body.data.length > 1, 'the gateway has looked');
  const stats = await segment.look();
  const page = await open('about:blank');
  // One look alone makes no mark: what is drawn is the past.
  await page.route('**/admin/stats/stream', (route) => route.fulfill({ contentType: 'text/event-stream', body: `event: metrics\ndata: ${JSON.stringify(stats)}\n\n` }));
  await page.goto(segment.url);
  await eventually(async () => (await heightOf(page, 'Depth', '--red')) > 0, 'the past is drawn');
  await page.context().close();
});

test('dashboard_http_charts_mean_the_same_before_and_after_a_reload', async () => {
  const own = await Segment.open();
  try {
    const history = async () => (await own.call('GET', 'admin/stats/history?period=5s')).body.data;
    await eventually(async () => (await history()).length > 0, 'the gateway has looked');
    const page = await open(own.url);
    await says(page, 'waiting', '0');
    const flat = (height) => height > 0 && height < 8;
    const high = (height) => height > 12;
    // The lines of all kinds lie upon each other at 0; the last one is seen.
    const lines = (retried, failed, when) => eventually(async () => retried(await heightOf(page, 'Jobs a second', '--amber'))
      && failed(await heightOf(page, 'Jobs a second', '--red')), `${when}: the lines`);
    const fail = async (count, retry, state) => {
      const ids = own.enqueue(...Array.from({ length: count }, () => ({ queue: 'broken', retry })));
      const { body } = await own.call('POST', 'workers/fetch', { queues: ['broken'], count });
      assert.strictEqual(body.jobs.length, count);
      for (const id of ids) await own.call('POST', 'workers/nack', { job_id: id, error: { code: 'broken', message: 'it broke' } });
      assert.strictEqual(own.job(ids[count - 1]).state, state);
    };
    const sum = async (name) => (await history()).reduce((all, each) => all + each[name], 0);
    await fail(20, { max_attempts: 3, initial_interval: 'PT1H' }, 'retryable');
    await lines(high, flat, 'retried');
    await eventually(async () => (await sum('retried')) === 20, 'the history knows it');
    assert.strictEqual(await sum('failed'), 20, 'attempts');
    await page.reload();
    await lines(high, flat, 'retried, loaded again');
    // Fewer, so that neither line hides the other where both fall into one period of the history.
    await fail(10, { max_attempts: 1 }, 'discarded');
    await lines(high, high, 'failed');
    await eventually(async () => (await sum('discarded')) === 10, 'the history knows it');
    await page.reload();
    await lines(high, high, 'failed, loaded again');
    assert.deepStrictEqual(page.wrong, []);
    await page.context().close();
  } finally {
    await own.close();
  }
});

test('dashboard_http_lists_and_one_job_are_live', async () => {
  const page = await open(segment.url);
  await show(page, 'jobs?queue=list', 'Jobs');
  await page.getByText('No job matches.').waitFor();
  const [id] = segment.enqueue({ queue: 'list', args: ['x'] });
  await page.getByRole('link', { name: id }).click();
  // The list's own choice of states says "available" too.
  await page.getByRole('heading', { level: 1, name: `Jobs: ${id}` }).waitFor();
  await page.getByText('available', { exact: true }).waitFor();
  const { body } = await segment.call('POST', 'workers/fetch', { queues: ['list'], worker_id: 'w9' });
  assert.strictEqual(body.jobs[0].id, id);
  await page.getByText('active', { exact: true }).waitFor();
  await segment.call('PUT', `jobs/${id}/progress`, { progress: 0.5, message: 'half of it' });
  await page.getByText('half of it', { exact: true }).waitFor();
  await segment.call('POST', 'workers/ack', { job_id: id, result: { pages: 3 } });
  await page.getByText('"pages": 3').waitFor();
  await page.getByText('job.completed').waitFor();
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_a_result_that_is_kept_no_longer_is_told', async () => {
  const page = await open(segment.url);
  const [id] = segment.enqueue({ queue: 'short', result_ttl: 0 });
  await show(page, `jobs/${id}`, /^Jobs: /);
  await segment.call('POST', 'workers/fetch', { queues: ['short'] });
  await segment.call('POST', 'workers/ack', { job_id: id, result: { pages: 3 } });
  await page.getByText('It was kept for a time that is over.').waitFor();
  assert.strictEqual(await page.getByText('"pages": 3').count(), 0);
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_a_page_of_the_gateway_hears_events_through_a_websocket', async () => {
  const page = await open(segment.url);
  const hear = () => page.evaluate(() => new Promise((resolve, reject) => {
    const told = [];
    const socket = new WebSocket(`ws://${location.host}/ojs/v1/ws`, ['ojs.v1']);
    socket.onopen = () => socket.send('{"action":"subscribe","channel":"all"}');
    socket.onerror = () => reject(new Error('refused'));
    socket.onclose = ({ code, wasClean }) => resolve({ told, code, wasClean, protocol: socket.protocol });
    socket.onmessage = ({ data }) => {
      told.push(JSON.parse(data));
      if (told.length === 1) document.body.dataset.hears = 'yes';
      if (told.at(-1).data?.to === 'cancelled') socket.close(1000);
    };
  }));
  const heard = hear();
  await page.locator('body[data-hears=yes]').waitFor({ state: 'attached' });
  const [id] = segment.enqueue({ queue: 'heard' });
  await segment.call('DELETE', `jobs/${id}`);
  const { told, ...end } = await heard;
  assert.deepStrictEqual(end, { code: 1000, wasClean: true, protocol: 'ojs.v1' });
  assert.deepStrictEqual(told[0], { type: 'subscribed', channel: 'all' });
  const change = told.at(-1);
  assert.deepStrictEqual([change.channel, change.event, change.data.job_id, change.data.from], ['all', 'job.state_changed', id, 'available']);
  assert.deepStrictEqual(page.wrong, []);
  // A page of elsewhere may not.
  await page.goto('about:blank');
  const refused = await page.evaluate((url) => new Promise((resolve) => {
    const socket = new WebSocket(url);
    socket.onopen = () => resolve(false);
    socket.onerror = () => resolve(true);
  }), segment.url.replace('http', 'ws') + '/ojs/v1/ws');
  assert.ok(refused);
  await page.context().close();
});

test('dashboard_http_events_are_live_and_filtered', async () => {
  const page = await open(segment.url);
  await show(page, 'events', 'Events');
  await page.getByText(/^live, all: /).waitFor();
  const [first] = segment.enqueue({ queue: 'told' });
  await page.getByRole('link', { name: first }).waitFor();
  await page.getByRole('combobox', { name: 'Queue', exact: true }).selectOption('told');
  await page.getByText(/^live, all: 0 since/).waitFor();
  const [other] = segment.enqueue({ queue: 'untold' });
  const [second] = segment.enqueue({ queue: 'told' });
  await page.getByRole('link', { name: second }).waitFor();
  assert.strictEqual(await page.getByRole('link', { name: other }).count(), 0);
  await page.getByRole('button', { name: 'Hold' }).click();
  const [third] = segment.enqueue({ queue: 'told' });
  await page.getByText(/^live, all: 2 since/).waitFor();
  assert.strictEqual(await page.getByRole('link', { name: third }).count(), 0);
  await page.getByRole('button', { name: 'Go on' }).click();
  await page.getByRole('link', { name: third }).waitFor();
  await page.context().close();
});

test('dashboard_http_shows_and_mends_a_lost_gateway', async () => {
  const page = await open(segment.url);
  await page.getByText('live', { exact: true }).first().waitFor();
  await segment.stopGateway('SIGKILL');
  await page.getByRole('alert').getByText('The connection to the gateway is lost.').waitFor();
  await picture(page, 'lost');
  segment.enqueue({ queue: 'meanwhile' });
  await segment.startGateway(segment.host);
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'meanwhile' }).waitFor();
  // One that stands still, with its connections open, is lost as well.
  segment.gateway.kill('SIGSTOP');
  await page.getByRole('alert').getByText('The connection to the gateway is lost.').waitFor();
  segment.gateway.kill('SIGCONT');
  await page.getByRole('alert').waitFor({ state: 'detached' });
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_a_tab_that_is_not_seen_holds_no_connection', async () => {
  const page = await open(segment.url);
  await page.getByText('live', { exact: true }).first().waitFor();
  const hide = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { value, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  await hide(true);
  await page.getByText('away', { exact: true }).waitFor();
  segment.enqueue({ queue: 'unseen' });
  await hide(false);
  await page.getByRole('link', { name: 'unseen' }).waitFor();
  assert.strictEqual(await page.getByRole('alert').count(), 0);
  await page.context().close();
});

test('dashboard_http_a_view_that_fails_leaves_the_others', async () => {
  const page = await open(segment.url);
  await page.route('**/admin/waits', (route) => route.fulfill({ json: { items: [{ queue: 'odd' }] } }));
  await show(page, 'waits', 'Waits');
  await page.getByText('This view failed').waitFor();
  await show(page, 'queues', 'Queues');
  await page.getByLabel('Name contains').waitFor();
  await page.context().close();
});

test('dashboard_http_waits_for_a_gateway_that_is_not_there_yet', async () => {
  const page = await open(segment.url);
  await page.getByText('live', { exact: true }).first().waitFor();
  await page.route('**/admin/access', (route) => route.abort());
  await page.reload();
  await page.getByText('The gateway does not answer.').waitFor();
  await page.unroute('**/admin/access');
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await page.context().close();
});
