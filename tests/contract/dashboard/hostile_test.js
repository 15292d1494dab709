// SPDX-License-Identifier: Apache-2.0
//
// What jobs, workers and other pages try never acts on the dashboard.
'use strict';
const assert = require('node:assert');
const http = require('node:http');
const { after, before, test } = require('node:test');
const { Segment, closeBrowser, eventually, open, openBrowser, picture, show } = require('./board.js');

const EVIL = [
  '<img src=x onerror="window.pwned=1">', '<script>window.pwned=1</script>', '"><svg onload=window.pwned=1>', "'-alert(1)-'",
  'javascript:window.pwned=1', '{{constructor.constructor("window.pwned=1")()}}', '${window.pwned=1}', '</title></pre></td><b>bold</b>',
  '\u202Etxt.exe\u202C', '\u0000\u0007\u001b[31m', 'a'.repeat(3000),
];

/** Characters that turn the direction of the text are shown by their numbers. */
const shown = (text) => text.replace(/[\u202a-\u202e]/g, (each) => `\\u${each.charCodeAt(0).toString(16)}`);

let segment;
async function accepted(method, what, body) {
  const reply = await segment.call(method, what, body);
  assert.ok(reply.status < 300, `${what}: ${reply.status} ${JSON.stringify(reply.body)}`);
  return reply.body;
}
before(async () => {
  await openBrowser();
  segment = await Segment.open({ gateway: ['--max-body', '4M'] });
});
after(async () => {
  await segment.close();
  await closeBrowser();
});

test('dashboard_http_never_interprets_what_jobs_bring', async () => {
  const meta = Object.fromEntries([...EVIL.entries()].map(([n, text]) => [`${n} ${text.slice(0, 40)}`, text]));
  // Natively, for the gateway takes no such tenant.
  const tenant_id = EVIL[0];
  const [id, result] = segment.enqueue(
    { type: 'evil.job', queue: 'evil', args: EVIL, meta: { ...meta, tenant_id }, tags: EVIL.slice(0, 3), retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } },
    { type: 'evil.result', queue: 'evil', args: [], meta: { tenant_id } },
  );
  await segment.call('POST', 'workers/register', { worker_id: EVIL[0], hostname: EVIL[1], queues: ['evil'] });
  await segment.call('POST', 'workers/fetch', { queues: ['evil'], worker_id: EVIL[0] });
  await segment.call('PUT', `jobs/${id}/progress`, { progress: 0.5, message: EVIL[2] });
  const page = await open(segment.url);
  await show(page, `jobs/${id}`, `Jobs: ${id}`);
  await page.locator('main p', { hasText: 'Progress:' }).getByText(EVIL[2]).waitFor();
  await segment.call('POST', 'workers/nack', { job_id: id, error: { code: EVIL[0], message: EVIL[1], type: EVIL[2], details: { html: EVIL[0] } } });
  await page.getByText('discarded', { exact: true }).first().waitFor();
  await segment.call('POST', 'workers/fetch', { queues: ['evil'], worker_id: EVIL[0] });
  await segment.call('POST', 'workers/ack', { job_id: result, result: { html: EVIL[0] } });
  // What a worker says of itself but for its state, a workflow and its steps are any text; names of crons and limits are not.
  await accepted('POST', 'workers/register', { worker_id: EVIL[0], hostname: EVIL[1], queues: ['evil', EVIL[3]], labels: { [EVIL[2]]: EVIL[0] } });
  assert.strictEqual((await segment.call('POST', 'workers/heartbeat', { worker_id: EVIL[0], state: EVIL[2] })).status, 400);
  const [first, second] = [EVIL[0], EVIL[2]].map((step) => ({ id: step, type: 'evil.step', args: EVIL, options: { queue: 'evil' } }));
  const flow = (await accepted('POST', 'workflows', { name: EVIL[1], steps: [first, { ...second, depends_on: [EVIL[0]] }] })).workflow.id;
  await accepted('POST', 'jobs', { type: 'evil.once', queue: 'evil', args: EVIL, unique: { keys: ['type', 'args'] } });
  assert.strictEqual((await segment.call('POST', 'cron', { name: EVIL[0], expression: '0 4 * * *', type: 'evil.cron', args: [] })).status, 400);
  assert.strictEqual((await segment.call('PUT', `rate-limits/${encodeURIComponent(EVIL[0])}`, { concurrency: 1 })).status, 400);
  const views = {
    '': ['evil'], queues: ['evil'], 'queues/evil': ['available'], workers: [EVIL[0], EVIL[1], EVIL[3]], jobs: ['evil.job'], [`jobs/${id}`]: [EVIL[1]],
    [`jobs/${result}`]: ['completed'], dead: [EVIL[1]], tenants: [EVIL[0]], events: ['live'], limits: [], unique: ['evil.once'],
    workflows: [EVIL[1]], [`workflows/${flow}`]: [EVIL[0], EVIL[2]], cron: ['No cron job is set up.'], waits: ['evil'],
  };
  await visit(page, views);
  await show(page, `jobs/${id}`, `Jobs: ${id}`);
  for (const text of EVIL.slice(0, 8))
    assert.ok((await page.getByRole('region', { name: 'Arguments' }).innerText()).includes(JSON.stringify(text)), text);
  // What would turn the direction of the text is shown by its number.
  assert.ok((await page.getByRole('region', { name: 'Arguments' }).innerText()).includes('"\\u202etxt.exe\\u202c"'));
  await picture(page, 'hostile');
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

/** Shows each view with its texts as they are; none has become an element, a script or a way out. */
async function visit(page, views) {
  for (const [view, texts] of Object.entries(views)) {
    await page.evaluate((hash) => { location.hash = hash; }, `#/${view}`);
    for (const text of texts) await eventually(async () => (await page.locator('main').innerText()).includes(text), `${view} shows ${text} as it is`);
    await eventually(async () => !(await page.locator('main').innerText()).includes('Asking the gateway'), view);
    const elements = await page.evaluate(() => [window.pwned, ...[...document.querySelectorAll('main :is(img, script, iframe, svg[onload], b b)')].map((each) => each.outerHTML)]);
    assert.deepStrictEqual(elements, [undefined], view);
    // Links stay on the page, whatever they were made of.
    const away = await page.evaluate(() => [...document.querySelectorAll('main a')].map((each) => each.getAttribute('href')).filter((href) => !href.startsWith('#/')));
    assert.deepStrictEqual(away, [], view);
  }
}

test('dashboard_http_never_interprets_what_the_gateway_says', async () => {
  // Names that no segment takes: the page does not rely upon that.
  await accepted('POST', 'jobs', { type: 'odd.job', queue: 'odd', args: [] });
  await accepted('PUT', 'rate-limits/odd', { concurrency: 1 });
  await accepted('PUT', 'admin/pools/odd', { queues: ['odd'] });
  let stats;  // those who ask within 100 ms share a look, which may be of before
  await eventually(async () => (stats = await segment.look()).sample.pools.some(({ name }) => name === 'odd'), 'the pool is counted');
  const { sample } = stats;
  const queue = sample.queues.find(({ name }) => name === 'odd');
  sample.queues.push({ ...queue, name: EVIL[0], state: EVIL[1], order: EVIL[2], totals: { ...queue.totals, conflicts: 1 } });
  const [limit, pool] = [sample.limits[0], sample.pools.find(({ name }) => name === 'odd')];
  sample.limits.push({ ...limit, key: EVIL[0], rate: { limit: 1, period: EVIL[1] } }, { ...limit, key: EVIL[8] });
  sample.pools.push({ ...pool, name: EVIL[1], strategy: EVIL[2], queues: [EVIL[3]] });
  sample.workers.push({ ...sample.workers[0], pid: EVIL[0], state: EVIL[1], pools: [EVIL[2]], queues: [EVIL[3]] });
  sample.tenants.push({ queue: EVIL[1], tenant: EVIL[2], weight: 1, depth: 1, active: 0, oldest_age_ms: 1, max_depth: 0, actual_share: 0 });
  const page = await open('about:blank');
  const event = `id: 1\nevent: metrics\ndata: ${JSON.stringify(stats)}\n\n`;
  await page.route('**/admin/stats/stream', (route) => route.fulfill({ contentType: 'text/event-stream', body: event }));
  await page.route('**/ojs/v1/cron', (route) => route.fulfill({ json: { crons: [{
    name: EVIL[0], expression: EVIL[1], timezone: EVIL[2], type: EVIL[3], enabled: true, next_run_at: EVIL[4], last_run_at: EVIL[5], overlap_policy: EVIL[6],
    options: { queue: EVIL[7] },
  }] } }));
  await page.goto(segment.url);
  await visit(page, {
    '': [EVIL[0], EVIL[1]], queues: [EVIL[0], EVIL[1], EVIL[2]], [`queues/${encodeURIComponent(EVIL[0])}`]: [EVIL[1], EVIL[2]],
    workers: [EVIL[0], EVIL[1], EVIL[3]], jobs: ['odd.job'], limits: [EVIL[0], EVIL[1], shown(EVIL[8])], tenants: [EVIL[1], EVIL[2]], unique: [EVIL[0]],
    waits: [EVIL[0]], cron: [EVIL[0], EVIL[1], EVIL[2], EVIL[3], EVIL[6], EVIL[7]],
  });
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_never_interprets_its_own_address', async () => {
  const page = await open(segment.url);
  for (const hash of ['#/jobs/<img src=x onerror=window.pwned=1>', '#/queues/%3Cscript%3Ewindow.pwned=1', '#/jobs?queue=%22%3E%3Cimg src=x onerror=window.pwned=1%3E', '#/jobs/%E0%A4%A', '#/__proto__/a', '#/workflows/..%2F..%2Fadmin']) {
    await page.evaluate((text) => { location.hash = text; }, hash);
    await page.locator('main h1').waitFor();
    assert.strictEqual(await page.evaluate(() => window.pwned), undefined);
    assert.strictEqual(await page.locator('main img').count(), 0);
  }
  assert.deepStrictEqual(page.wrong, []);
  await page.context().close();
});

test('dashboard_http_keeps_numbers_and_cuts_long_arguments', async () => {
  const reply = await fetch(`${segment.url}/ojs/v1/jobs`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: `{"type":"big.job","queue":"big","args":[12345678901234567890123, 1.10, ${JSON.stringify('long '.repeat(50_000))}]}`,
  });
  const { id } = (await reply.json()).job;
  const page = await open(segment.url);
  await show(page, `jobs/${id}`, `Jobs: ${id}`);
  await page.getByText('12345678901234567890123').waitFor();
  const shown = async () => (await page.getByRole('region', { name: 'Arguments' }).innerText()).length;
  assert.ok((await shown()) < 30_000);
  await page.getByRole('button', { name: /^Show all 25/ }).click();
  await eventually(async () => (await shown()) > 250_000, 'all of it is shown');
  await page.context().close();
});

test('dashboard_http_has_a_strict_policy', async () => {
  const reply = await fetch(segment.url);
  const policy = Object.fromEntries(reply.headers.get('content-security-policy').split('; ').map((each) => [each.split(' ')[0], each.split(' ').slice(1).join(' ')]));
  assert.deepStrictEqual([policy['default-src'], policy['script-src'], policy['style-src'], policy['connect-src'], policy['frame-ancestors']], ["'none'", "'self'", "'self'", "'self'", "'none'"]);
  assert.ok(!JSON.stringify(policy).includes('unsafe'));
  assert.strictEqual(reply.headers.get('x-content-type-options'), 'nosniff');
  assert.ok(!/<script>|style=|onclick|onload/.test(await reply.text()));
  // The browser holds it: a script, an address elsewhere and markup from text are all refused.
  const page = await open(segment.url);
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  const refused = await page.evaluate(async (elsewhere) => {
    const seen = [];
    document.addEventListener('securitypolicyviolation', (event) => seen.push(event.effectiveDirective));
    const script = document.createElement('div');
    try { script.innerHTML = '<b>x</b>'; } catch { seen.push('markup'); }
    await fetch(elsewhere, { mode: 'no-cors' }).catch(() => seen.push('fetch'));
    // In a task of its own: what a debugger evaluates is free of the policy.
    await new Promise((done) => setTimeout(() => { try { (0, eval)('1'); } catch { seen.push('eval'); } done(); }));
    return seen;
  }, segment.url.replace('127.0.0.1', 'localhost'));
  for (const what of ['markup', 'fetch', 'eval']) assert.ok(refused.includes(what), `${what} of ${refused}`);
  await page.context().close();
});

test('dashboard_http_other_pages_change_nothing', async () => {
  segment.enqueue({ queue: 'aimed' });
  const target = `${segment.url}/ojs/v1/admin/queues/aimed/pause`;
  const attack = `<!doctype html><form id=f method=post action="${target}"></form><script>
    Promise.allSettled([
      fetch("${target}", { method: "POST", mode: "no-cors" }),
      fetch("${target}", { method: "POST" }),
      fetch("${segment.url}/ojs/v1/admin/jobs", { method: "GET" }).then((reply) => reply.text()).then((text) => { document.title = "read " + text; }),
    ]).then(() => { window.done = true; });</script>`;
  const stranger = http.createServer((_, reply) => reply.end(attack)).listen(0, '127.0.0.1');
  await new Promise((resolve) => stranger.once('listening', resolve));
  try {
    const page = await open(`http://localhost:${stranger.address().port}/`);
    await eventually(() => page.evaluate(() => window.done), 'it has tried');
    assert.ok(!(await page.title()).startsWith('read'));
    await page.evaluate(() => document.getElementById('f').submit());
    await page.getByText('may not change anything here').waitFor();
    assert.strictEqual((await segment.call('GET', 'queues/aimed')).body.queue.paused, false);
    await page.context().close();
  } finally {
    await new Promise((resolve) => stranger.close(resolve));
  }
});

test('dashboard_http_a_name_that_was_pointed_here_is_refused', async () => {
  const [host, port] = segment.host.split(':');
  const status = (name) => new Promise((resolve, reject) => {
    http.get({ host, port, path: '/ojs/v1/admin/jobs', headers: { Host: name } }, (reply) => { reply.resume(); resolve(reply.statusCode); }).on('error', reject);
  });
  assert.strictEqual(await status(`evil.example:${port}`), 403);
  for (const name of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`]) assert.strictEqual(await status(name), 200, name);
});
