// SPDX-License-Identifier: Apache-2.0
'use strict';

// Middlewares for programs in Node, over the C ABI: functions around an enqueue, `async (job, next) => next(job)`, and
// around a handler, `async (job, context, next) => next()`. contract_test.js runs them.

const { sized } = require('./ojs_shm.js');

/// Middlewares in their order, the first the outermost, each under a name. A job keeps the chain with which it began.
class Chain {
  #entries = [];

  get names() {
    return this.#entries.map(([name]) => name);
  }
  get functions() {
    return this.#entries.map(([, middleware]) => middleware);
  }
  add(name, middleware) {
    this.#put(this.#entries.length, name, middleware);
  }
  prepend(name, middleware) {
    this.#put(0, name, middleware);
  }
  insertBefore(existing, name, middleware) {
    this.#put(this.#find(existing), name, middleware);
  }
  insertAfter(existing, name, middleware) {
    this.#put(this.#find(existing) + 1, name, middleware);
  }
  remove(name) {
    this.#find(name);
    this.#entries = this.#entries.filter(([each]) => each !== name);
  }
  #find(name) {
    const place = this.names.indexOf(name);
    if (place < 0) throw new Error(`the chain has no middleware ${name}`);
    return place;
  }
  #put(place, name, middleware) {
    if (this.names.includes(name)) throw new Error(`the chain has a middleware ${name} already`);
    this.#entries = [...this.#entries.slice(0, place), [name, middleware], ...this.#entries.slice(place)];
  }
}

function once(next) {
  let called = false;
  return (...given) => {
    if (called) throw new Error('a middleware called next() a second time');
    called = true;
    return next(...given);
  };
}

/// Enqueues `{type, args, queue, meta}` through the chain. The id, or null when a middleware dropped the job.
async function enqueue(ojs, producer, chain, job) {
  const middlewares = chain.functions;
  const go = async (place, passed) => {
    if (place < middlewares.length) return middlewares[place](passed, once((changed) => go(place + 1, changed)));
    const options = { queue: passed.queue ?? 'default' };
    if (passed.meta) options.extra = JSON.stringify({ meta: passed.meta });
    return ojs.enqueue_job(producer, passed.type, passed.args ?? [], options);
  };
  return (await go(0, job)) ?? null;
}

/// Runs the handler of a fetched job inside the chain, and acks its result or nacks what was thrown. The context has
/// the job, its attempt and queue, and `metadata`, which middlewares and handler of this run share.
async function handle(ojs, worker, held, chain, handler) {
  const job = ojs.read_job(held);
  const context = { job, attempt: job.attempt, queue: job.queue, metadata: {} };
  const middlewares = chain.functions;
  let handlerThrew = false;
  const go = async (place) => {
    if (place < middlewares.length) return middlewares[place](job, context, once(() => go(place + 1)));
    try {
      return await handler(job, context);
    } catch (error) {
      handlerThrew = true;
      throw error;
    }
  };
  try {
    const result = Buffer.from(JSON.stringify((await go(0)) ?? null));
    ojs.check(worker, ojs.ack(worker, held, result, result.length));
  } catch (error) {
    const failure = sized('failure', {
      code: handlerThrew ? 'error' : 'middleware_error', message: String(error.message ?? error),
    });
    ojs.check(worker, ojs.nack(worker, held, failure, null));
  }
}

module.exports = { Chain, enqueue, handle };
