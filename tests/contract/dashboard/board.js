// SPDX-License-Identifier: Apache-2.0
//
// A segment with its gateway, and the dashboard in a browser.
'use strict';
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');
const { chromium } = require('playwright-core');

const BOUND = 30_000; // no test waits longer for anything
const bin = (name) => path.join(process.env.OJS_SHM_BIN_DIR, name);

/** The first true answer of `done`; it is asked again and again, within the bound. */
async function eventually(done, what) {
  const end = Date.now() + BOUND;
  for (;;) {
    let answer;
    let problem = '';
    try {
      answer = await done();
    } catch (error) {
      problem = `: ${error.message}`;
    }
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`it did not happen in time: ${what ?? done}${problem}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Whatever kills the tests ends their programs too. */
const run = (name, args, stdio) => spawn('setpriv', ['--pdeathsig', 'TERM', bin(name), ...args], { stdio });

/** A program whose first line of output says that it is ready. */
async function start(name, args, log) {
  const child = run(name, args, ['ignore', 'pipe', log]);
  child.ended = new Promise((resolve) => child.once('exit', resolve));
  const lines = readline.createInterface({ input: child.stdout });
  const first = await Promise.race([
    new Promise((resolve) => lines.once('line', resolve)),
    child.ended.then((code) => { throw new Error(`${name} ended with ${code}: ${fs.readFileSync(log, 'utf8')}`); }),
  ]);
  if (!first.startsWith('READY')) throw new Error(`${name} said ${first}`);
  child.url = first.split(' ')[1];
  return child;
}

class Segment {
  /** A broker and a gateway that can be stopped by itself. */
  static async open({ gateway = [], broker = ['--slots', '8192'] } = {}) {
    const segment = new Segment();
    segment.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ojs-shm-dashboard-'));
    segment.where = ['--name', 'shop', '--dir', segment.folder];
    segment.log = fs.openSync(path.join(segment.folder, 'log'), 'a+');
    segment.flags = gateway;
    segment.workers = [];
    segment.broker = await start('ojs-shm-broker', [...segment.where, '--remove', ...broker], segment.log);
    await segment.startGateway('127.0.0.1:0');
    return segment;
  }

  async startGateway(listen) {
    const flags = [...this.where, '--listen', listen, '--threads', '2', ...this.flags];
    this.gateway = await start('ojs-shm-gateway', flags, this.log);
    this.url = this.gateway.url;
    this.host = this.url.slice('http://'.length);
  }

  async stopGateway(signal = 'SIGTERM') {
    this.gateway.kill(signal);
    await this.gateway.ended;
  }

  /** The command line on the same segment; what it prints. */
  native(words, input) {
    const ran = spawnSync(bin('ojs-shm'), [...words, ...this.where], { input, encoding: 'utf8', timeout: BOUND, maxBuffer: 1 << 28 });
    if (ran.status !== 0) throw new Error(`ojs-shm ${words.join(' ')}: ${ran.status} ${ran.stderr}`);
    return ran.stdout;
  }

  /** Ids of the jobs, in their order. */
  enqueue(...envelopes) {
    const lines = envelopes.map((each) => JSON.stringify({ type: 'test.job', args: [], ...each })).join('\n');
    return this.native(['enqueue'], lines).trim().split('\n');
  }
  job(id) {
    return JSON.parse(this.native(['get', id, '--json']));
  }

  work(queue, ...command) {
    return this.workAs(['--queue', queue], ...command);
  }
  workAs(flags, ...command) {
    const child = run('ojs-shm', ['work', ...flags, ...this.where, '--', ...command], ['ignore', 'ignore', this.log]);
    child.ended = new Promise((resolve) => child.once('exit', resolve));
    this.workers.push(child);
    return child;
  }

  async call(method, what, body, headers = {}) {
    const reply = await fetch(`${this.url}/ojs/v1/${what}`, {
      method, body: body === undefined ? undefined : JSON.stringify(body),
      headers: body === undefined ? headers : { 'Content-Type': 'application/json', ...headers },
    });
    const text = await reply.text();
    return { status: reply.status, body: text ? JSON.parse(text) : null };
  }

  /** A worker that says who it is, and what the segment knows of it. */
  async registered(id, queue, ...command) {
    const child = this.workAs(['--queue', queue, '--worker-id', id], ...command);
    await eventually(async () => (await this.workerOf(id))?.pid === child.pid, `${id} is registered`);
    return child;
  }
  async workerOf(id, headers) {
    const { status, body } = await this.call('GET', `admin/workers/${encodeURIComponent(id)}`, undefined, headers);
    return status === 200 ? body : null;
  }

  /** The next look of the stream that the page reads. */
  async look() {
    const { body } = await fetch(`${this.url}/ojs/v1/admin/stats/stream`);
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ''; ;) {
      const { value, done } = await reader.read();
      if (done) throw new Error('the stream has ended');
      text += value;
      const found = /^data: (.*)\n\n/m.exec(text);
      if (found) return await reader.cancel(), JSON.parse(found[1]);
    }
  }

  async close() {
    for (const child of [...this.workers, this.gateway, this.broker]) {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGCONT'), child.kill('SIGTERM');
      await child.ended;
    }
    fs.closeSync(this.log);
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

let browser;
async function openBrowser() {
  // As root there is no sandbox to be had.
  const args = process.getuid() === 0 ? ['--no-sandbox'] : [];
  browser = await chromium.launch({ executablePath: process.env.OJS_SHM_CHROMIUM, args, timeout: 4 * BOUND });
}
const closeBrowser = () => browser.close();

/** A page in a context of its own; what goes wrong in it is collected in `page.wrong`. */
async function open(url, { token, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, timezoneId: 'UTC', ...options });
  context.setDefaultTimeout(BOUND);
  if (token) await context.addInitScript((text) => sessionStorage.setItem('ojs-shm-token', text), token);
  // The page takes a notice away after 12 s (store.js); a slow test needs longer to press its button.
  await context.addInitScript(() => {
    const later = window.setTimeout;
    window.setTimeout = (act, ms, ...more) => later(act, ms === 12_000 ? 120_000 : ms, ...more);
  });
  const page = await context.newPage();
  page.wrong = [];
  page.on('pageerror', (error) => page.wrong.push(error.stack));
  page.on('dialog', (dialog) => { page.wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('console', (message) => {
    // The browser tells every refused request as an error; those that a test means are not wrong.
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) page.wrong.push(message.text());
  });
  await page.goto(url);
  return page;
}

const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
/** What axe-core has against the page, which must have been opened without its policy. */
async function violations(page) {
  const found = await page.evaluate(async (source) => {
    if (!window.axe) (0, eval)(source);
    return (await window.axe.run(document, { resultTypes: ['violations'] })).violations;
  }, AXE);
  return found.map((each) => `${each.id}: ${each.nodes.map((node) => `${node.target} ${node.failureSummary}`).join('; ')}`);
}

/** Answers the question that the page asks, with the button of that name. */
async function answer(page, button) {
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  await dialog.getByRole('button', { name: button, exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
}

/** How many pixels of the chart, from its lowest to its highest, have lines of this colour; 0 when none has. */
const heightOf = (page, title, colour) => page.locator('figure.chart', { has: page.getByRole('heading', { name: title, exact: true }) }).locator('canvas').evaluate((canvas, name) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const probe = document.body.appendChild(document.createElement('span'));
  probe.style.color = `var(${name})`;
  const wanted = getComputedStyle(probe).color.match(/\d+/g).map(Number);
  probe.remove();
  const rows = new Set();
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] > 200 && wanted.every((value, n) => Math.abs(value - data[i + n]) < 24)) rows.add(Math.floor(i / 4 / canvas.width));
  return rows.size && Math.max(...rows) - Math.min(...rows) + 1;
}, colour);

/** Shows a view; the page stays the same. */
async function show(page, view, heading) {
  await page.evaluate((hash) => { location.hash = hash; }, `#/${view}`);
  await page.getByRole('heading', { level: 1, name: heading }).waitFor();
}

const picture = (page, name) => page.screenshot({ path: path.join(process.env.OJS_SHM_PICTURES, `${name}.png`), fullPage: true });

module.exports = { Segment, answer, closeBrowser, eventually, heightOf, open, openBrowser, picture, show, violations };
