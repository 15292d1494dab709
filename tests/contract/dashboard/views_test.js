// SPDX-License-Identifier: Apache-2.0
//
// Each view shows what the segment has, for eyes and for screen readers, on every screen.
'use strict';
const assert = require('node:assert');
const zlib = require('node:zlib');
const { after, before, test } = require('node:test');
const { Segment, closeBrowser, eventually, open, openBrowser, picture, show, violations } = require('./board.js');

let segment;
let failed;
let unique;
let beating;

before(async () => {
  await openBrowser();
  segment = await Segment.open();
  segment.native(['queue', 'set', 'mail', '--max-depth', '40']);
  const tenants = (n) => ({ meta: { tenant_id: `shop-${n % 3}` } });
  segment.enqueue(
    ...Array.from({ length: 36 }, (_, n) => ({ type: 'mail.send', queue: 'mail', priority: n % 4, args: [n], ...tenants(n) })),
    ...Array.from({ length: 60 }, (_, n) => ({ type: 'report.build', queue: 'reports', priority: 3, args: [n] })),
  );
  segment.native(['queue', 'pause', 'reports']);
  unique = segment.enqueue({ type: 'report.daily', queue: 'daily', args: [], unique: { keys: ['type'], period: 'P2D', on_conflict: 'ignore' } })[0];
  segment.enqueue({ type: 'report.daily', queue: 'daily', args: [], unique: { keys: ['type'], period: 'P2D', on_conflict: 'ignore' } });
  failed = segment.enqueue({ type: 'image.resize', queue: 'images', args: [{ file: 'a.png' }], retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } })[0];
  segment.work('images', 'false');
  await eventually(() => segment.job(failed).state === 'discarded', 'the job of images fails');
  await segment.call('PUT', 'admin/pools/web', { queues: ['mail', 'reports'], strategy: 'weighted', weights: { mail: 3 } });
  await segment.call('PUT', 'rate-limits/smtp', { concurrency: 5 });
  await segment.call('POST', 'workers/register', { worker_id: 'laptop-7', queues: ['mail'], concurrency: 2 });
  const beat = () => segment.call('POST', 'workers/beat', { worker_id: 'laptop-7', state: 'running', active_jobs: 1 });
  await beat();
  beating = setInterval(() => beat().catch(() => {}), 5000); // of a worker that is silent for 30 s the jobs return
  for (let n = 0; n < 6; n++) {
    const { body } = await segment.call('POST', 'workers/fetch', { queues: ['mail'], worker_id: 'laptop-7' });
    if (n < 5) await segment.call('POST', 'workers/ack', { job_id: body.jobs[0].id, result: { sent: true } });
  }
});
after(async () => {
  clearInterval(beating);
  await segment.close();
  await closeBrowser();
});

const views = () => [
  { path: '', heading: 'Overview', shows: ['mail', 'paused', '5 ever', '1 dead letters', 'Jobs a second'] },
  { path: 'queues', heading: 'Queues', shows: ['mail', '30 of 40', 'paused', 'best priority first', '60'] },
  { path: 'queues/mail', heading: 'Queues: mail', shows: ['Order in force: best priority first', '30 of 40', 'completed'] },
  { path: 'workers', heading: 'Workers', shows: ['laptop-7', '1 of 2', 'web', '75 %', '25 %', 'broker'] },
  { path: 'jobs', heading: 'Jobs', shows: ['report.build', 'image.resize', '1 to 50 of 98', 'available'] },
  { path: `jobs/${failed}`, heading: /^Jobs: /, shows: ['image.resize', '"a.png"', 'exit_1', 'discarded', '1 of 1'] },
  { path: 'dead', heading: 'Dead letters', shows: [failed, 'exit_1'] },
  { path: 'events', heading: 'Events', shows: ['live'] },
  { path: 'waits', heading: 'Waits', shows: ['0 critical', 'Available jobs by priority', '60'] },
  { path: 'tenants', heading: 'Tenants', shows: ['shop-0', 'shop-1', 'shop-2', 'mail'] },
  { path: 'limits', heading: 'Limits', shows: ['smtp', '0 of 5', 'an operator'] },
  { path: 'unique', heading: 'Unique jobs', shows: ['daily', unique, 'report.daily', 'are left out', 'until it ends', '1 to 1 of 1'] },
  { path: 'workflows', heading: 'Workflows', shows: [] },
  { path: 'cron', heading: 'Cron', shows: [] },
];

async function shows(page, view) {
  for (const text of view.shows)
    await eventually(async () => (await page.locator('main').innerText()).includes(text), `${view.path} shows ${text}`);
}

test('dashboard_http_shows_every_view', async () => {
  const page = await open(segment.url);
  for (const view of views()) {
    await show(page, view.path, view.heading);
    await shows(page, view);
    await picture(page, view.path.startsWith('jobs/') ? 'job' : view.path.replace('/', '_') || 'overview');
  }
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

for (const colorScheme of ['light', 'dark'])
  test(`dashboard_http_is_accessible_in_${colorScheme}`, async () => {
    const page = await open(segment.url, { colorScheme, bypassCSP: true, reducedMotion: 'reduce' });
    for (const view of views()) {
      await show(page, view.path, view.heading);
      await shows(page, view);
      assert.deepStrictEqual(await violations(page), [], `${view.path || 'overview'} in ${colorScheme}`);
    }
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    assert.deepStrictEqual(await violations(page), [], 'the list of keys');
    await picture(page, `keys_${colorScheme}`);
    await page.context().close();
  });

test('dashboard_http_fits_narrow_screens_and_zoom', async () => {
  // 320 pixels are also what 1280 pixels are at 400 %, and 640 at 200 %.
  for (const width of [320, 640]) {
    const page = await open(segment.url, { viewport: { width, height: 700 } });
    for (const view of views()) {
      await show(page, view.path, view.heading);
      const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(inner <= outer, `${view.path || 'overview'} at ${width}: the page is ${inner} wide`);
    }
    await show(page, '', 'Overview');
    await picture(page, `narrow_${width}`);
    await page.context().close();
  }
});

test('dashboard_http_goes_by_the_keyboard_alone', async () => {
  const page = await open(segment.url);
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await page.keyboard.press('Tab');
  assert.strictEqual(await page.evaluate(() => document.activeElement.textContent.trim()), 'To the content');
  await page.keyboard.press('Enter');
  assert.strictEqual(await page.evaluate(() => document.activeElement.tagName), 'H1');
  await page.keyboard.press('g');
  await page.keyboard.press('q');
  await page.getByRole('heading', { level: 1, name: 'Queues' }).waitFor();
  await page.getByText('4 of 4 queues').waitFor();  // the field is there
  await page.keyboard.press('/');
  await page.keyboard.type('mai');
  await page.getByText('1 of 4 queues').waitFor();
  // What is typed into a field is no key of the page.
  await page.keyboard.type('gj');
  await page.getByText('0 of 4 queues').waitFor();
  for (let n = 0; n < 5; n++) await page.keyboard.press('Backspace');
  const pause = page.getByRole('button', { name: 'Pause mail' });
  await pause.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.strictEqual((await segment.call('GET', 'queues/mail')).body.queue.paused, false);
  await eventually(() => pause.evaluate((each) => each === document.activeElement), 'the focus is back');
  await page.context().close();
});

test('dashboard_http_keeps_the_chosen_colours', async () => {
  const page = await open(segment.url, { colorScheme: 'light' });
  const dark = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor === 'rgb(13, 17, 23)');
  await page.getByRole('heading', { level: 1 }).waitFor();
  assert.strictEqual(await dark(), false);
  await page.getByLabel('Colours').selectOption('dark');
  await eventually(dark, 'the page is dark');
  await page.reload();
  await eventually(dark, 'the page is dark after it was loaded again');
  await page.context().close();
});

test('dashboard_http_is_small_and_asks_only_its_gateway', async () => {
  const page = await open('about:blank');
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(segment.url);
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  assert.deepStrictEqual(asked.filter((url) => !url.startsWith(`${segment.url}/`)), []);
  let bytes = 0;
  for (const file of ['', 'dashboard.js', 'dashboard.css', 'icon.svg'])
    bytes += zlib.gzipSync(Buffer.from(await (await fetch(`${segment.url}/${file}`)).arrayBuffer())).length;
  assert.ok(bytes < 150 * 1024, `${bytes} bytes when compressed`);
  const licences = await (await fetch(`${segment.url}/licences.txt`)).text();
  for (const name of ['preact', 'htm', 'uplot', 'Apache License', 'MIT']) assert.ok(licences.includes(name), name);
  await page.context().close();
});
