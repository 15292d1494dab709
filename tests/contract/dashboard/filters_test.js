// SPDX-License-Identifier: Apache-2.0
//
// What a view is narrowed to: by queue, by kind, by span, by id. And what the heat map of waits says.
'use strict';
const assert = require('node:assert');
const { after, before, test } = require('node:test');
const { Segment, closeBrowser, eventually, heightOf, open, openBrowser, picture, show } = require('./board.js');

let segment;
before(async () => {
  await openBrowser();
  segment = await Segment.open({ gateway: ['--test-hooks'] });
});
after(async () => {
  await segment.close();
  await closeBrowser();
});

const rows = (page, name) => page.getByRole('region', { name, exact: true }).locator('tbody tr');
async function accepted(method, what, body) {
  const reply = await segment.call(method, what, body);
  assert.ok(reply.status < 300, `${what}: ${reply.status} ${JSON.stringify(reply.body)}`);
  return reply.body;
}
async function fetched(queue, count = 1) {
  const { jobs } = await accepted('POST', 'workers/fetch', { queues: [queue], count });
  assert.strictEqual(jobs.length, count);
  return jobs.map(({ id }) => id);
}

test('dashboard_http_overview_shows_the_chosen_span', async () => {
  // A past that no gateway of a test has: jobs waited ten minutes ago, and one of them was old half an hour ago.
  const end = Date.parse((await segment.look()).sample.at);
  const past = Array.from({ length: 12 }, (_, n) => ({
    timestamp: new Date(end - (12 - n) * 300_000 + 60_000).toISOString(), span_ms: 300_000, enqueued: 0, dispatched: 0, processed: 0, failed: 0,
    discarded: 0, retried: 0, depth: n === 10 ? 500 : 0, active: 0, dead: 0, oldest_age_ms: n === 6 ? 60_000 : 0, bytes_used: 1, bytes_total: 2,
    deaths_total: 0, repairs_total: 0,
  }));
  const page = await open('about:blank');
  await page.route('**/admin/stats/history**', (route) => route.fulfill({ json: { period: 'PT1H', interval_ms: 300_000, data: past } }));
  await page.goto(segment.url);
  for (const [span, waited, old] of [['5 minutes', false, false], ['1 hour', true, true], ['15 minutes', true, false], ['5 minutes', false, false]]) {
    await page.getByLabel('Span').selectOption(span);
    await eventually(async () => {
      const [depth, oldest] = [await heightOf(page, 'Depth', '--blue'), await heightOf(page, 'Age of the oldest waiting job', '--amber')];
      return depth > 12 === waited && oldest > 12 === old;
    }, `${span}: the lines`);
  }
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_axes_have_whole_jobs_and_times_of_the_span', async () => {
  segment.enqueue({ queue: 'axes' });
  const end = Date.parse((await segment.look()).sample.at);
  const past = (minutes) => Array.from({ length: 48 }, (_, n) => ({
    timestamp: new Date(end - (48 - n) * minutes * 60_000).toISOString(), span_ms: minutes * 60_000, enqueued: 0, dispatched: 0, processed: 0,
    failed: 0, discarded: 0, retried: 0, depth: n % 3, active: 0, dead: 0, oldest_age_ms: 0, latency_p50_ms: 0, latency_p99_ms: 0,
  }));
  const page = await open('about:blank');
  // What a canvas has written since it was cleared.
  await page.addInitScript(() => {
    const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function (...at) {
      this.canvas.written = [];
      return clearRect.apply(this, at);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
      (this.canvas.written ??= []).push(text);
      return fillText.call(this, text, ...at);
    };
  });
  await page.route('**/admin/stats/history**', (route) => {
    const day = route.request().url().includes('1h');
    return route.fulfill({ json: { period: day ? 'P30D' : 'PT1H', interval_ms: 5_000, data: past(day ? 600 : 1) } });
  });
  await page.goto(segment.url);
  await show(page, 'queues/axes', 'Queues: axes');
  const written = () => page.locator('figure.chart', { has: page.getByRole('heading', { name: 'Depth', exact: true }) }).locator('canvas')
    .evaluate((canvas) => canvas.written ?? []);
  for (const [span, time] of [['1 hour', /^\d\d:\d\d:00$/], ['30 days', /^\d{1,2} [A-Z][a-z]{2,3}$/]]) {
    await page.getByRole('combobox', { name: 'Span' }).selectOption(span);
    await eventually(async () => (await written()).filter((text) => time.test(text)).length > 2, `${span}: its times`);
    const rest = (await written()).filter((text) => !time.test(text));
    assert.deepStrictEqual(rest, ['0', '1', '2'], span);
  }
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_finds_a_job_by_its_id', async () => {
  const ids = segment.enqueue({ queue: 'found' }, { queue: 'found' });
  const page = await open(segment.url);
  for (const [id, submit] of [[ids[0], (field) => field.press('Enter')], [ids[1], () => page.getByRole('button', { name: 'Show' }).click()]]) {
    await show(page, 'jobs', 'Jobs');
    const field = page.getByLabel('Job by its id');
    await field.fill(` ${id} `);
    await submit(field);
    await page.getByRole('heading', { level: 1, name: `Jobs: ${id}` }).waitFor();
    await page.getByRole('region', { name: 'Arguments' }).waitFor();
  }
  await page.context().close();
});

test('dashboard_http_dead_letters_of_one_queue', async () => {
  const ids = segment.enqueue(...['lost', 'lost', 'broken'].map((queue) => ({ queue, retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } })));
  await fetched('lost', 2);
  await fetched('broken');
  for (const id of ids) await accepted('POST', 'workers/nack', { job_id: id, error: { code: `in_${segment.job(id).queue}`, message: 'it broke' } });
  const page = await open(segment.url);
  await show(page, 'dead', 'Dead letters');
  const letters = () => rows(page, 'Dead letters').locator('td:first-child').allInnerTexts();
  const total = () => page.locator('.tile', { has: page.getByText('dead letters', { exact: true }) }).locator('dd').innerText();
  const are = (wanted, why) => eventually(async () => JSON.stringify((await letters()).sort()) === JSON.stringify([...wanted].sort())
    && (await total()) === String(wanted.length) && JSON.stringify(await rows(page, 'Why, the most frequent first').locator('td:first-child').allInnerTexts()) === JSON.stringify(why), `${wanted}`);
  await are(ids, ['in_lost', 'in_broken']);
  await page.getByLabel('Queue').selectOption({ label: 'lost (2)' });
  await are(ids.slice(0, 2), ['in_lost']);
  await page.getByLabel('Queue').selectOption({ label: 'broken (1)' });
  await are(ids.slice(2), ['in_broken']);
  await page.getByLabel('Queue').selectOption('all');
  await are(ids, ['in_lost', 'in_broken']);
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_events_of_one_kind', async () => {
  const page = await open(segment.url);
  await show(page, 'events', 'Events');
  let answer;
  const asked = new Promise((resolve) => { answer = resolve; });
  await page.route('**/events/stream*queue*', async (route) => {
    await asked;
    await route.continue();
  });
  await page.getByLabel('What').selectOption('queues');
  await page.getByText(/^connecting, queues: 0 since/).waitFor();
  answer();
  await page.getByText(/^live, queues: 0 since/).waitFor();
  const [seen] = segment.enqueue({ queue: 'mute' });
  segment.native(['queue', 'pause', 'mute']);
  const told = () => page.locator('tbody td:nth-child(2)').allInnerTexts();
  await eventually(async () => JSON.stringify(await told()) === '["queue.paused"]', 'the queue alone is told');
  await page.getByLabel('What').selectOption('failures');
  await page.getByText(/^live, failures: 0 since/).waitFor();
  segment.native(['queue', 'resume', 'mute']);
  await fetched('mute');
  await accepted('POST', 'workers/nack', { job_id: seen, error: { code: 'broken', message: 'it broke' } });
  await page.getByRole('link', { name: seen }).first().waitFor();
  assert.ok((await told()).every((type) => /^job\.(failed|discarded|retrying)$/.test(type)), await told());
  await page.getByLabel('What').selectOption('all');
  await page.getByText(/^live, all: /).waitFor();
  const [other] = segment.enqueue({ queue: 'mute' });
  await page.getByRole('link', { name: other }).first().waitFor();
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_unique_jobs_of_one_queue', async () => {
  const [one, two] = segment.enqueue(...['once', 'single'].map((queue) => ({ queue, unique: { keys: ['type', 'queue'] } })));
  const page = await open(segment.url);
  await show(page, 'unique', 'Unique jobs');
  const held = (wanted) => eventually(async () => {
    const links = await rows(page, 'Keys that are held').locator('td:nth-child(2) a').allInnerTexts();
    return JSON.stringify(links.sort()) === JSON.stringify([...wanted].sort());
  }, `${wanted}`);
  await held([one, two]);
  await page.getByLabel('Queue').selectOption('single');
  await held([two]);
  await page.getByText('1 to 1 of 1').waitFor();
  await page.getByLabel('Queue').selectOption('once');
  await held([one]);
  await page.getByLabel('Queue').selectOption('all');
  await held([one, two]);
  await page.context().close();
});

test('dashboard_http_heat_map_says_the_share_of_each_time', async () => {
  // Minutes that nobody waits for: the segment's clock is moved.
  const pass = (ms) => accepted('POST', 'test/clock', { advance_ms: ms });
  const end = async (ids) => { for (const id of ids) await accepted('POST', 'workers/ack', { job_id: id }); };
  const soon = segment.enqueue(...Array.from({ length: 3 }, () => ({ queue: 'heat', priority: 1 })));
  const { now } = await pass(0);
  const [later] = segment.enqueue({ queue: 'heat', priority: 1, scheduled_at: new Date(Date.parse(now) + 3_600_000).toISOString() });
  await pass(600_000);
  assert.deepStrictEqual(await fetched('heat', 3), soon);
  await end(soon);
  await pass(3_000_000);
  await eventually(() => segment.job(later).state === 'available', 'its time has come');
  await pass(120_000);
  await fetched('heat');
  segment.enqueue({ queue: 'cold', priority: 3 }, { queue: 'cold', priority: 4 });
  await fetched('cold');
  const page = await open(segment.url);
  await show(page, 'waits', 'Waits');
  const map = page.getByRole('region', { name: 'How long jobs waited' });
  /** {heading: cell} of the row, without empty cells; with the shade that a share has. */
  const row = (queue, priority) => map.evaluate((region, wanted) => {
    const heads = [...region.querySelectorAll('thead th')].map((each) => each.textContent);
    const found = [...region.querySelectorAll('tbody tr')].find((each) => each.cells[0].textContent === wanted[0] && each.cells[1].textContent === wanted[1]);
    return found && Object.fromEntries([...found.cells].slice(2).map((cell, n) => [heads[n + 2], [cell.textContent, /heat-[1-5]/.exec(cell.className)?.[0]].filter(Boolean).join(' ')])
      .filter(([head, text]) => text && head !== 'Mean'));
  }, [queue, priority]);
  const says = (wanted, what) => eventually(async () => JSON.stringify(await row('heat', '1 high')) === JSON.stringify(wanted), what).catch(async () => assert.deepStrictEqual(await row('heat', '1 high'), wanted, what));
  await says({ '≤ 4 min 22 s': '25 % heat-2', '≤ 17 min 28 s': '75 % heat-4', Jobs: '4' }, 'from available');
  await picture(page, 'heat');
  await page.getByLabel('How long a job').selectOption('waited since its enqueue');
  await says({ '≤ 17 min 28 s': '75 % heat-4', '≤ 1 h 9 min': '25 % heat-2', Jobs: '4' }, 'from enqueue');
  // Of the one that is still held nothing is known yet.
  await page.getByLabel('How long a job').selectOption('ran');
  await eventually(async () => (await row('heat', '1 high'))?.Jobs === '3', 'three ran');
  await page.getByLabel('How long a job').selectOption('waited since it became available');
  // Both tables follow the queue.
  const queues = async (name) => [...new Set(await rows(page, name).locator('td:first-child').allInnerTexts())];
  await eventually(async () => (await queues('How long jobs waited')).includes('cold') && (await queues('Available jobs by priority')).length > 1, 'all queues');
  await page.getByRole('combobox', { name: 'Queue', exact: true }).selectOption('cold');
  await eventually(async () => JSON.stringify([await queues('How long jobs waited'), await queues('Available jobs by priority')]) === '[["cold"],["cold"]]', 'one queue');
  await page.getByRole('combobox', { name: 'Queue', exact: true }).selectOption('heat');
  await page.getByText('No job is available.').waitFor();
  await eventually(async () => JSON.stringify(await queues('How long jobs waited')) === '["heat"]', 'the other queue');
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});
