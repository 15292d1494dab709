// SPDX-License-Identifier: Apache-2.0
'use strict';

// A worker process of contract_test.js: `worker.js NAME DIR QUEUE COUNT` finishes so many jobs and prints "DONE type"
// for each; with COUNT 0 it takes one, prints "HOLDING id" and waits to be killed.

const { Library, sized } = require('./ojs_shm.js');

const [name, dir, queue, count] = process.argv.slice(2);
const ojs = new Library(process.env.OJS_SHM_LIBRARY, process.env.OJS_SHM_HEADER);
const segment = ojs.open('segment_attach', name, dir);
const worker = ojs.open('worker_open', segment, sized('worker_options', { queues: [queue], queue_count: 1 }));
const job = ojs.open('job_new');

function take() {
  ojs.check(worker, ojs.fetch(worker, job, 30_000));
  return ojs.read_job(job);
}

if (Number(count) === 0) {
  process.stdout.write(`HOLDING ${take().id}\n`);
  setInterval(() => {}, 1 << 30);
} else {
  for (let left = Number(count); left > 0; --left) {
    const { type, args, attempt } = take();
    const result = Buffer.from(JSON.stringify({ args, attempt, pid: process.pid }));
    ojs.check(worker, ojs.ack(worker, job, result, result.length));
    process.stdout.write(`DONE ${type}\n`);
  }
  for (const handle of [job, worker, segment]) ojs.check(null, ojs.close(handle));
}
