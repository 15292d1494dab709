// SPDX-License-Identifier: Apache-2.0
//
// Each view shows what the segment has, for eyes and for screen readers, on every screen.
'use strict';
const assert = require('node:assert');
const http = require('node:http');
const { after, before, test } = require('node:test');
const { Segment, closeBrowser, eventually, open, openBrowser, picture, show, violations } = require('./board.js');

let segment;
let failed;
let unique;
let flow;
let beating;

/** Workers that have ended in each way, and one that is there. */
async function registerWorkers() {
  segment.enqueue({ type: 'mail.send', queue: 'mail' });
  await segment.call('POST', 'workers/register', { worker_id: 'phone-3', queues: ['mail'], hostname: 'phone.example' });
  const { body } = await segment.call('POST', 'workers/fetch', { queues: ['mail'], worker_id: 'phone-3' });
  assert.strictEqual(body.jobs.length, 1);
  await segment.call('POST', 'test/clock', { advance_ms: 31_000 });
  await eventually(async () => (await segment.workerOf('phone-3'))?.ended === 'silent', 'phone-3 is silent for too long');
  const [doomed] = segment.enqueue({ type: 'image.crop', queue: 'images', retry: { max_attempts: 1 } });
  const resizer = await segment.registered('resizer-1', 'images', 'sleep', '60');
  await eventually(() => segment.job(doomed).state === 'active', 'resizer-1 has a job');
  resizer.kill('SIGKILL');
  await eventually(async () => (await segment.workerOf('resizer-1'))?.ended === 'died', 'resizer-1 is known to be dead');
  (await segment.registered('resizer-2', 'images', 'false')).kill('SIGTERM');
  await eventually(async () => (await segment.workerOf('resizer-2')) === null, 'resizer-2 has left');
  await segment.registered('resizer-3', 'images', 'false');
}

before(async () => {
  await openBrowser();
  segment = await Segment.open({ gateway: ['--test-hooks'] });
  segment.native(['queue', 'set', 'mail', '--max-depth', '40']);
  await registerWorkers();
  for (const flags of [['aged', '--aging', 'on'], ['turns', '--level-weights', '0:5,*:1'], ['fair', '--tenant-fairness', 'on', '--tenant-weights', 'acme:3'],
    ['even', '--aging', 'on', '--tenant-fairness', 'across']]) segment.native(['queue', 'set', ...flags]);
  const tenants = (n) => ({ meta: { tenant_id: `shop-${n % 3}` } });
  segment.enqueue(
    ...Array.from({ length: 36 }, (_, n) => ({ type: 'mail.send', queue: 'mail', priority: n % 4, args: [n], ...tenants(n) })),
    ...Array.from({ length: 60 }, (_, n) => ({ type: 'report.build', queue: 'reports', priority: 3, args: [n] })),
  );
  segment.native(['queue', 'pause', 'reports']);
  unique = segment.enqueue({ type: 'report.daily', queue: 'daily', args: [], unique: { keys: ['type'], period: 'P2D', on_conflict: 'ignore' } })[0];
  segment.enqueue({ type: 'report.daily', queue: 'daily', args: [], unique: { keys: ['type'], period: 'P2D', on_conflict: 'ignore' } });
  failed = segment.enqueue({ type: 'image.resize', queue: 'images', args: [{ file: 'a.png' }], retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } })[0];
  await eventually(() => segment.job(failed).state === 'discarded', 'the job of images fails');
  await segment.call('PUT', 'admin/pools/web', { queues: ['mail', 'reports'], strategy: 'weighted', weights: { mail: 3 } });
  await segment.call('PUT', 'rate-limits/smtp', { concurrency: 5 });
  await segment.call('POST', 'cron', { name: 'nightly', expression: '30 4 29 2 *', timezone: 'UTC', type: 'report.night', args: [], options: { queue: 'reports' } });
  const step = (id, more) => ({ id, type: `order.${id}`, args: [], options: { queue: 'daily' }, ...more });
  flow = (await segment.call('POST', 'workflows', { name: 'order', steps: [step('pay'), step('send', { depends_on: ['pay'] })] })).body.workflow.id;
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
  { path: '', heading: 'Overview', shows: ['mail', 'paused', '5 ever', '1 dead letter', '2 registered workers', 'Jobs a second'] },
  { path: 'queues', heading: 'Queues', shows: ['mail', '31 of 40', 'paused', 'best priority first', '60'] },
  { path: 'queues/mail', heading: 'Queues: mail', shows: ['Order in force: best priority first', '31 of 40', 'half of them, at most', 'completed'] },
  { path: 'workers', heading: 'Workers', shows: ['laptop-7', '1 of 2', 'web', '75 %', '25 %', 'broker, supervisor'] },
  { path: 'jobs', heading: 'Jobs', shows: ['report.build', 'image.resize', '1 to 50 of 101', 'available'] },
  { path: `jobs/${failed}`, heading: /^Jobs: /, shows: ['image.resize', '"a.png"', 'exit_1', 'discarded', '1 of 1'] },
  { path: 'dead', heading: 'Dead letters', shows: [failed, 'exit_1'] },
  { path: 'events', heading: 'Events', shows: ['live'] },
  { path: 'waits', heading: 'Waits', shows: ['0 critical', 'Available jobs by priority', '60'] },
  { path: 'tenants', heading: 'Tenants', shows: ['shop-0', 'shop-1', 'shop-2', 'mail'] },
  { path: 'limits', heading: 'Limits', shows: ['smtp', '0 of 5', 'an operator'] },
  { path: 'unique', heading: 'Unique jobs', shows: ['daily', unique, 'report.daily', 'are left out', 'until it ends', '1 to 1 of 1'] },
  { path: 'workflows', heading: 'Workflows', shows: ['order', '0 of 2', 'running'] },
  { path: `workflows/${flow}`, heading: /^Workflows: /, shows: ['order.pay', 'order.send', '0 of 2'] },
  { path: 'cron', heading: 'Cron', shows: ['nightly', '30 4 29 2 *', 'report.night', '04:30:00'] },
];
const named = ({ path }) => ({ [`jobs/${failed}`]: 'job', [`workflows/${flow}`]: 'workflow' })[path] ?? (path.replace('/', '_') || 'overview');
const row = (page, table, name) => page.getByRole('region', { name: table }).locator('tbody tr', { has: page.getByText(name, { exact: true }) });

async function shows(page, view) {
  for (const text of view.shows)
    await eventually(async () => (await page.locator('main').innerText()).includes(text), `${view.path} shows ${text}`);
}

test('dashboard_http_shows_every_view', async () => {
  const page = await open(segment.url);
  for (const view of views()) {
    await show(page, view.path, view.heading);
    await shows(page, view);
    await picture(page, named(view));
  }
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

/** The numbers beside a chart, and that one of its lines is drawn in one of these colours. */
async function draws(page, title, legend, colours) {
  const chart = page.locator('figure.chart', { has: page.getByRole('heading', { name: title, exact: true }) });
  await eventually(async () => legend.test((await chart.locator('.legend').innerText()).replace(/\s+/g, ' ')), `${title} says ${legend}`);
  const drawn = (names) => chart.locator('canvas').evaluate((canvas, wanted) => {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return wanted.map((name) => {
      const probe = document.body.appendChild(document.createElement('span'));
      probe.style.color = `var(${name})`;
      const colour = getComputedStyle(probe).color.match(/\d+/g).map(Number);
      probe.remove();
      let found = 0;
      for (let i = 0; i < pixels.length; i += 4)
        if (pixels[i + 3] > 200 && colour.every((value, n) => Math.abs(value - pixels[i + n]) < 24)) found++;
      return found;
    });
  }, names);
  // Where lines lie upon each other the last one is seen.
  await eventually(async () => (await drawn(colours)).some((pixels) => pixels > 10), `${title} is drawn`);
}

test('dashboard_http_overview_says_and_draws_each_number', async () => {
  const page = await open(segment.url);
  const tile = (name) => page.locator('.tile', { has: page.getByText(name, { exact: true }) }).locator('dd').innerText();
  const { counters } = (await segment.look()).sample.segment;
  assert.strictEqual(counters.deaths, 1);
  assert.ok(counters.repairs >= 1);
  await eventually(async () => /^93\s+oldest [1-9]/.test(await tile('waiting')), 'what waits, and the oldest');
  assert.match(await tile('memory'), /^[1-9][\d.]* %\s+of \d/);
  assert.match(await tile('deaths'), new RegExp(`^1\\s+${counters.repairs} repair`));
  const charts = [
    ['Jobs a second', /in [\d.]+\/s done [\d.]+\/s retried [\d.]+\/s failed [\d.]+\/s/, ['--blue', '--green', '--amber', '--red']],
    ['Depth', /waiting 93 active 1 dead letters 1/, ['--blue', '--red']],
    ['Age of the oldest waiting job', /oldest [1-9]/, ['--amber']],
    ['Memory in use', /used [1-9][\d.]* %/, ['--violet']],
    ['Deaths and repairs, ever', new RegExp(`deaths 1 repairs ${counters.repairs}`), ['--red', '--green']],
  ];
  for (const [title, legend, colours] of charts) await draws(page, title, legend, colours);
  assert.strictEqual(await page.locator('figure.chart').count(), charts.length);
  await page.context().close();
});

test('dashboard_http_draws_what_one_queue_did', async () => {
  const page = await open(segment.url);
  await show(page, 'queues/mail', 'Queues: mail');
  for (const span of ['1 hour', '1 day', '30 days']) {
    await page.getByRole('combobox', { name: 'Span' }).selectOption(span);
    await draws(page, 'Jobs a second', /in [\d.]+\/s done [\d.]+\/s retried [\d.]+\/s failed [\d.]+\/s/, ['--blue', '--green', '--red']);
    await draws(page, 'Depth', /waiting 31 active 1 dead letters 0/, ['--blue', '--green']);
    await draws(page, 'How long jobs waited', /half of them, at most \d.* 99 %, at most \d/, ['--blue', '--amber']);
  }
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_says_the_order_of_each_queue_in_words', async () => {
  const page = await open(segment.url);
  const orders = {
    daily: 'best priority first', aged: 'best priority first, waiting jobs rise', turns: 'levels in turns by weight',
    fair: 'best priority first; tenants in turns',
    even: 'best priority first, waiting jobs rise; tenants in turns across levels',
  };
  await show(page, 'queues', 'Queues');
  for (const [queue, words] of Object.entries(orders))
    await eventually(async () => (await row(page, 'Queues', queue).locator('td').nth(10).innerText()) === words, `${queue}: ${words}`);
  for (const [queue, words] of Object.entries(orders)) {
    await show(page, `queues/${queue}`, `Queues: ${queue}`);
    await page.locator('main p', { hasText: `Order in force: ${words}.` }).waitFor();
  }
  await page.context().close();
});

test('dashboard_http_lists_registered_workers_and_how_they_ended', async () => {
  const page = await open(segment.url);
  await show(page, 'workers', 'Workers');
  const cells = async (id) => (await row(page, 'Registered workers', id).locator('td').allInnerTexts()).map((text) => text.replace(/\s+/g, ' ').trim());
  await eventually(async () => (await row(page, 'Registered workers', 'laptop-7').count()) === 1, 'the list is there');
  const resizer = await segment.workerOf('resizer-3');
  const [, , , host] = await cells('resizer-3');
  assert.deepStrictEqual((await cells('phone-3')).slice(1, 6), ['silent 1 job went to others', 'a gateway', 'phone.example', '–', 'mail']);
  const died = await cells('resizer-1');
  assert.strictEqual(died[1], 'died');
  assert.match(died[2], /^process \d+$/);
  assert.deepStrictEqual((await cells('resizer-3')).slice(1, 7), ['running', `process ${resizer.pid}`, host, '–', 'images', '0 of 1']);
  assert.deepStrictEqual((await cells('laptop-7')).slice(1, 7), ['running', 'a gateway', '–', '–', 'mail', '1 of 2']);
  assert.strictEqual(await row(page, 'Registered workers', 'resizer-2').count(), 0, 'it has left');
  assert.strictEqual(await row(page, 'Processes', String(resizer.pid)).count(), 1);
  // Only one that has not ended is told anything.
  const told = await page.getByRole('region', { name: 'Registered workers' }).getByRole('button', { name: /^(Quiet|Resume) / }).evaluateAll((all) => all.map((each) => each.getAttribute('aria-label')));
  assert.deepStrictEqual(told.sort(), ['Quiet laptop-7', 'Quiet resizer-3']);
  await page.getByLabel('Name contains').fill('laptop');
  await page.getByText('1 of 4 registered workers').waitFor();
  assert.strictEqual(await row(page, 'Registered workers', 'resizer-3').count(), 0);
  await page.context().close();
});

for (const colorScheme of process.env.OJS_SHM_DASHBOARD_SHORT ? ['light'] : ['light', 'dark'])
  test(`dashboard_http_is_accessible_in_${colorScheme}`, async () => {
    const page = await open(segment.url, { colorScheme, bypassCSP: true, reducedMotion: 'reduce' });
    for (const view of views()) {
      await show(page, view.path, view.heading);
      await shows(page, view);
      assert.deepStrictEqual(await violations(page), [], `${view.path || 'overview'} in ${colorScheme}`);
      if (colorScheme === 'dark') await picture(page, `dark_${named(view)}`);
    }
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    assert.deepStrictEqual(await violations(page), [], 'the list of keys');
    await picture(page, `keys_${colorScheme}`);
    await page.context().close();
  });

test('dashboard_http_fits_narrow_screens_and_zoom', async () => {
  // 320 pixels are also what 1280 pixels are at 400 %, and 640 at 200 %.
  for (const width of process.env.OJS_SHM_DASHBOARD_SHORT ? [320] : [320, 640]) {
    const page = await open(segment.url, { viewport: { width, height: 700 } });
    for (const view of views()) {
      await show(page, view.path, view.heading);
      await shows(page, view);
      const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(inner <= outer, `${view.path || 'overview'} at ${width}: the page is ${inner} wide`);
      const here = await page.locator('header nav [aria-current]').boundingBox();
      assert.ok(here.x >= 0 && here.x + here.width <= width, `${view.path || 'overview'} at ${width}: where the page is can be seen`);
      if (width === 320) await picture(page, `narrow_${named(view)}`);
    }
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
  await page.getByText('8 of 8 queues').waitFor();  // the field is there
  await page.keyboard.press('/');
  await page.keyboard.type('mai');
  await page.getByText('1 of 8 queues').waitFor();
  // What is typed into a field is no key of the page.
  await page.keyboard.type('gj');
  await page.getByText('0 of 8 queues').waitFor();
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
  // What crosses the wire: the forms that a browser asks for.
  const sent = await Promise.all(['', 'dashboard.js', 'dashboard.css', 'icon.svg'].map((file) => new Promise((resolve, reject) => {
    http.get(`${segment.url}/${file}`, { headers: { 'Accept-Encoding': 'gzip, deflate, br' } }, (reply) => {
      let bytes = 0;
      reply.on('data', (part) => { bytes += part.length; });
      reply.on('end', () => resolve([reply.headers['content-encoding'], bytes]));
    }).on('error', reject);
  })));
  assert.deepStrictEqual(sent.map(([coding]) => coding), ['gzip', 'gzip', 'gzip', 'gzip']);
  const bytes = sent.reduce((sum, [, each]) => sum + each, 0);
  assert.ok(bytes < 150 * 1024, `${bytes} bytes`);
  const licences = await (await fetch(`${segment.url}/licences.txt`)).text();
  for (const name of ['preact', 'htm', 'uplot', 'Apache License', 'MIT']) assert.ok(licences.includes(name), name);
  await page.context().close();
});

test('dashboard_http_shows_the_share_that_each_queue_and_tenant_gets', async () => {
  const fetched = async (body) => {
    const reply = await segment.call('POST', 'workers/fetch', body);
    assert.strictEqual(reply.status, 200, JSON.stringify(reply.body));
    return reply.body.jobs;
  };
  const tenant = (name, jobs) => Array.from({ length: jobs }, () => ({ queue: 'fair', meta: { tenant_id: name } }));
  await segment.call('PUT', 'admin/pools/mix', { queues: ['quick', 'slow'], strategy: 'weighted', weights: { quick: 3 } });
  const page = await open(segment.url);
  await show(page, 'workers', 'Workers');
  const shares = async (table, name, columns) => {
    const cells = await row(page, table, name).locator('td').allInnerTexts();
    return columns.map((column) => cells[column].trim()).join(' of ');
  };
  await eventually(async () => (await shares('Pools and their queues', 'quick', [5, 4])) === '– of 75 %', 'nothing was handed out');
  // Entitled to three of four, it gets one of five: there is no more of it.
  segment.enqueue({ queue: 'quick' }, ...Array.from({ length: 4 }, () => ({ queue: 'slow' })));
  assert.strictEqual((await fetched({ pool: 'mix', queues: ['quick', 'slow'], count: 5 })).length, 5);
  await eventually(async () => {
    const [quick, slow] = [await shares('Pools and their queues', 'quick', [5, 4]), await shares('Pools and their queues', 'slow', [5, 4])];
    return quick === '20 % of 75 %' && slow === '80 % of 25 %';
  }, 'the shares of quick and slow');
  assert.strictEqual(await shares('Pools and their queues', 'slow', [6]), '4');
  segment.enqueue(...tenant('basic', 4));
  assert.strictEqual((await fetched({ queues: ['fair'], count: 4 })).length, 4);
  segment.enqueue(...tenant('acme', 1));
  assert.strictEqual((await fetched({ queues: ['fair'] })).length, 1);
  segment.enqueue(...tenant('acme', 2), ...tenant('basic', 2));
  await show(page, 'tenants', 'Tenants');
  await eventually(async () => (await shares('Tenants in their queues', 'acme', [7, 6])) === '20 % of 75 %', 'the share of acme');
  await eventually(async () => (await shares('Tenants in their queues', 'basic', [7, 6])) === '80 % of 25 %', 'the share of basic');
  await page.context().close();
});
