// SPDX-License-Identifier: Apache-2.0
'use strict';

// The C ABI from Node: a real broker, this process as producer and observer, other Node processes as workers. Runs
// under node --test; OJS_SHM_BUILD names the build directory, else it is the source tree's build/.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');
const test = require('node:test');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const { Library, OjsError, sized, ID_SIZE, EVENTS_FROM_START, EVENTS_AT_ONCE } = require('./ojs_shm.js');
const { Chain, enqueue, handle } = require('./middleware.js');

const build = process.env.OJS_SHM_BUILD ?? path.join(__dirname, '../../../build');
// These files may have been copied away from the tree that the build was made from.
const source = /^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$/m.exec(fs.readFileSync(`${build}/CMakeCache.txt`, 'utf8'))[1];
process.env.OJS_SHM_LIBRARY = `${build}/lib/libojs_shm.so`;
process.env.OJS_SHM_HEADER = `${source}/worker_api/include/ojs_shm/ojs_shm.h`;

const BOUND_MS = 30_000;
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'ojs-shm-node-'));
const children = new Set();

/// A child whose stdout is read line by line. It dies with this process whatever happens.
function start(program, args, environment = {}) {
  const env = { ...process.env, ...environment };
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], env });
  const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  children.add(child);
  child.once('exit', () => children.delete(child));
  return { child, line: async () => (await lines.next()).value };
}
// After a test that went well there are none left.
test.afterEach(() => children.forEach((child) => child.kill('SIGKILL')));
process.on('SIGTERM', () => process.exit(1));
process.on('exit', () => {
  children.forEach((child) => child.kill('SIGKILL'));
  fs.rmSync(dir, { recursive: true, force: true });
});

function startWorker(name, queue, count) {
  return start(process.execPath, [path.join(__dirname, 'worker.js'), name, dir, queue, String(count)]);
}

async function ended(child) {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode;
}

async function startBroker(name, ...more) {
  const broker = start(`${build}/bin/ojs-shm-broker`, ['--name', name, '--dir', dir, '--remove', ...more]);
  assert.equal(await broker.line(), `READY name=${name}`);
  return broker.child;
}

async function stopBroker(child, name) {
  child.kill('SIGTERM');
  assert.equal(await ended(child), 0);
  assert.equal(fs.existsSync(path.join(dir, `ojs-shm.${name}`)), false);
}

const ojs = new Library(process.env.OJS_SHM_LIBRARY, process.env.OJS_SHM_HEADER);

/// A broker and this process's handles on its segment; all of it is gone afterwards, and the audit was clean.
async function withSegment(name, body, ...more) {
  const broker = await startBroker(name, ...more);
  const segment = ojs.open('segment_attach', name, dir);
  const here = { name, broker, segment };
  for (const role of ['producer', 'admin', 'observer']) here[role] = ojs.open(`${role}_open`, segment);
  try {
    await body(here);
    assert.deepEqual(JSON.parse(ojs.text(here.observer, 'audit')), []);
  } finally {
    for (const handle of [here.producer, here.admin, here.observer, segment]) ojs.check(null, ojs.close(handle));
  }
  await stopBroker(broker, name);
}

test('node_knows_the_version_of_library_and_format', async () => {
  assert.match(ojs.version(), /^\d+\.\d+\.\d+/);
  assert.ok(ojs.format() > 0);
  assert.equal(ojs.check_abi(99), -18);
});

test('node_gets_a_result_from_another_process', async () => {
  await withSegment('node-result', async ({ name, producer }) => {
    const sent = [{ to: 'user@example.com', subject: 'Grüße, 世界 🎉' }, 'x'.repeat(100_000), -1.5, null];
    const id = ojs.enqueue_job(producer, 'send_email', sent, { queue: 'mails' });
    assert.equal(id.length, ID_SIZE - 1);
    const worker = startWorker(name, 'mails', 1);
    const job = JSON.parse(await ojs.text_async(producer, 'wait', id, BOUND_MS));
    assert.equal(job.state, 'completed');
    assert.deepEqual(job.result, { args: sent, attempt: 1, pid: worker.child.pid });
    assert.deepEqual(job.args, sent);
    assert.equal(await ended(worker.child), 0);
  });
});

test('node_example_of_the_document_submits_a_job', async () => {
  await withSegment('node-example', async ({ name, producer }) => {
    const document = fs.readFileSync(`${source}/docs/c_api.md`, 'utf8');
    const script = path.join(dir, 'example.js');
    fs.writeFileSync(script, /<!-- node: example.js -->\n```js\n(.*?)\n```\n/s.exec(document)[1]);
    const modules = require.resolve('koffi').replace(/\/koffi\/.*/, '');
    const example = start(process.execPath, [script], {
      OJS_SHM_NAME: name, OJS_SHM_DIR: dir, LD_LIBRARY_PATH: `${build}/lib`, NODE_PATH: modules,
    });
    const job = JSON.parse(ojs.text(producer, 'get', await example.line()));
    assert.deepEqual([job.type, job.args, job.state], ['mail.send', ['user@example.com'], 'available']);
    assert.equal(await ended(example.child), 0);
  });
});

test('node_batch_is_worked_in_priority_order', async () => {
  await withSegment('node-order', async ({ name, producer, observer }) => {
    const specs = [['bulk', 4], ['normal'], ['critical', 0], ['high', 1], ['low', 3]].map(([type, priority]) =>
      sized('job_spec', { type, priority: priority ?? 0, flags: priority === undefined ? 0 : 1 }));
    const ids = Buffer.alloc(specs.length * ID_SIZE);
    ojs.check(producer, ojs.enqueue_batch(producer, specs, specs.length, ids));
    const waiting = JSON.parse(ojs.text(observer, 'list', sized('job_filter', { queue: 'default' })));
    const order = ['critical', 'high', 'normal', 'low', 'bulk'];
    assert.deepEqual(waiting.map((job) => job.type), order);
    const worker = startWorker(name, 'default', specs.length);
    for (const type of order) assert.equal(await worker.line(), `DONE ${type}`);
    assert.equal(await ended(worker.child), 0);
  });
});

test('node_waits_without_stopping_its_event_loop', async () => {
  await withSegment('node-loop', async ({ name, producer }) => {
    const id = ojs.enqueue_job(producer, 'later', []);
    const result = ojs.text_async(producer, 'wait', id, BOUND_MS);
    // Had the wait stopped the loop, this worker would never be started and the wait would time out.
    const worker = await new Promise((resolve) => setImmediate(() => resolve(startWorker(name, 'default', 1))));
    assert.equal(await worker.line(), 'DONE later');
    assert.equal(JSON.parse(await result).state, 'completed');
    assert.equal(await ended(worker.child), 0);
  });
});

test('node_worker_killed_by_SIGKILL_loses_no_job', async () => {
  await withSegment('node-kill', async ({ name, producer, admin }) => {
    const id = ojs.enqueue_job(producer, 'precious', [7]);
    const victim = startWorker(name, 'default', 0);
    assert.equal(await victim.line(), `HOLDING ${id}`);
    victim.child.kill('SIGKILL');
    await ended(victim.child);
    ojs.check(admin, ojs.repair(admin));
    const heir = startWorker(name, 'default', 1);
    const job = JSON.parse(await ojs.text_async(producer, 'wait', id, BOUND_MS));
    assert.deepEqual(job.result, { args: [7], attempt: 2, pid: heir.child.pid });
    assert.equal(job.attempt, 2);
    assert.equal(await ended(heir.child), 0);
  });
});

test('node_errors_carry_code_text_and_numbers', async () => {
  await withSegment('node-errors', async ({ producer, admin, observer }) => {
    const refused = (wanted, call) => assert.throws(call, (error) => {
      assert.ok(error instanceof OjsError && error.message.length > 0);
      for (const [member, value] of Object.entries(wanted)) assert.equal(error[member], value, error.message);
      return true;
    });
    ojs.check(admin, ojs.set_queue(admin, 'narrow', sized('queue_settings', { max_depth: 1, set: 1 })));
    ojs.enqueue_job(producer, 'one', [], { queue: 'narrow' });
    refused({ code: 'QUEUE_FULL', subject: 'narrow', depth: 1, bound: 1, unit: 'jobs' },
            () => ojs.enqueue_job(producer, 'two', [], { queue: 'narrow' }));
    refused({ code: 'invalid_request' }, () => ojs.enqueue_job(producer, 'deep', [], { priority: -1 }));
    refused({ code: 'not_found' }, () => ojs.text(observer, 'find', '0192f000-0000-7000-8000-000000000000'));
    refused({ code: 'cannot_attach' }, () => ojs.open('segment_attach', 'nobody', dir));
    refused({ code: 'invalid_request' }, () => ojs.check(null, ojs.enqueue(null, sized('job_spec', { type: 'x' }), null)));
    const queue = JSON.parse(ojs.text(observer, 'queue', 'narrow'));
    assert.deepEqual([queue.depth, queue.max_depth, queue.rejected_total], [1, 1, 1]);
    assert.deepEqual(queue.available_by_priority, { 2: 1 });
    assert.equal(queue.by_state.available, 1);
  });
});

test('node_sees_the_names_of_qo_priorities', async () => {
  await withSegment('node-qo', async ({ segment, producer, admin, observer }) => {
    assert.equal(ojs.text(segment, 'segment_convention'), 'qo');
    const priority = [0];
    ojs.check(observer, ojs.priority_by_name(observer, 'urgent', priority));
    assert.equal(priority[0], 200);
    ojs.check(admin, ojs.set_default_priority(admin, 'cleanup', 50));
    const id = ojs.enqueue_job(producer, 'cleanup', []);
    assert.equal(JSON.parse(ojs.text(producer, 'get', id)).priority, 50);
  }, '--convention', 'qo');
});

test('node_reads_chosen_events_and_goes_on_behind_one', async () => {
  await withSegment('node-events', async ({ segment, producer }) => {
    const read = (options, most) => {
      const events = ojs.open('events_choose', segment, sized('event_options', { flags: EVENTS_AT_ONCE, ...options }));
      const got = [];
      for (let text; got.length < most && (text = ojs.next_event_or_null(events)); got.push(JSON.parse(text)));
      const position = ojs.check(events, ojs.event_position(events));
      const lost = ojs.check(events, ojs.events_lost(events));
      ojs.check(null, ojs.close(events));
      return { got, position, lost };
    };
    const begin = EVENTS_AT_ONCE | EVENTS_FROM_START;
    for (const type of ['one', 'two', 'three']) ojs.enqueue_job(producer, type, [], { queue: 'told' });
    ojs.enqueue_job(producer, 'aside', []);
    const chosen = { types: ['job.enqueued'], type_count: 1, queues: ['told'], queue_count: 1 };

    const first = read({ ...chosen, flags: begin }, 1);
    assert.equal(first.got[0].data.job_type, 'one');
    const rest = read({ ...chosen, after: first.got[0].id, after_position: first.position }, 9);
    assert.deepEqual(rest.got.map((event) => event.data.job_type), ['two', 'three']);
    assert.equal(rest.lost, 0);
    assert.throws(() => read({ types: ['job.flew'], type_count: 1 }, 1), (error) => error.code === 'invalid_request');
  }, '--events');
});

test('node_chain_is_arranged_by_names', () => {
  const chain = new Chain();
  const step = (job, next) => next(job);
  chain.add('logging', step);
  chain.add('timeout', step);
  chain.insertBefore('timeout', 'metrics', step);
  chain.prepend('reports', step);
  chain.insertAfter('reports', 'traces', step);
  assert.deepEqual(chain.names, ['reports', 'traces', 'logging', 'metrics', 'timeout']);
  chain.remove('reports');
  assert.deepEqual(chain.names, ['traces', 'logging', 'metrics', 'timeout']);
  assert.throws(() => chain.add('timeout', step), /already/);
  assert.throws(() => chain.remove('reports'), /no middleware/);
});

test('node_middlewares_run_around_enqueues_and_handlers', async () => {
  await withSegment('node-middleware', async ({ segment, producer }) => {
    const order = [];
    const enqueuing = new Chain();
    enqueuing.add('gate', async (job, next) => (job.type === 'dropped' ? null : next(job)));
    enqueuing.add('trace', async (job, next) => next({ ...job, meta: { traceparent: '00-4b' } }));
    assert.equal(await enqueue(ojs, producer, enqueuing, { type: 'dropped' }), null);
    enqueuing.add('twice', async (job, next) => (await next(job)) && next(job));
    await assert.rejects(enqueue(ojs, producer, enqueuing, { type: 'walk', queue: 'aside' }), /second time/);
    enqueuing.remove('twice');

    const handling = new Chain();
    handling.add('report', async (job, context, next) => {
      try {
        return await next();
      } catch (error) {
        order.push(`${job.type} failed: ${error.message}`);
        throw error;
      }
    });
    handling.add('span', async (job, context, next) => {
      if (job.type === 'early') throw new Error('mine');
      context.metadata.span = context.attempt;
      return { wrapped: await next() };
    });
    const handler = async (job, context) => {
      if (job.type === 'broken') throw new Error('no route');
      return [job.args[0], context.metadata.span];
    };
    const worker = ojs.open('worker_open', segment, sized('worker_options'));
    const held = ojs.open('job_new');
    const ends = {};
    for (const type of ['walk', 'early', 'broken']) {
      const id = await enqueue(ojs, producer, enqueuing, { type, args: [7] });
      ojs.check(worker, ojs.fetch(worker, held, BOUND_MS));
      await handle(ojs, worker, held, handling, handler);
      ends[type] = JSON.parse(ojs.text(producer, 'get', id));
    }
    assert.deepEqual(ends.walk.result, { wrapped: [7, 1] });
    assert.deepEqual(ends.walk.meta, { traceparent: '00-4b' });
    assert.equal(ends.early.errors[0].code, 'middleware_error');
    assert.equal(ends.broken.errors[0].code, 'error');
    assert.deepEqual(order, ['early failed: mine', 'broken failed: no route']);
    for (const handle of [held, worker]) ojs.check(null, ojs.close(handle));
  });
});
