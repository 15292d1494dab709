// SPDX-License-Identifier: Apache-2.0
'use strict';

// ojs_shm.h as Node sees it through koffi. The prototypes are read from the header itself, so this cannot fall behind
// it; only the structs are written down again, with the names and types of the header.

const fs = require('node:fs');
const util = require('node:util');
const koffi = require('koffi');

const ABI_VERSION = 1;
const ID_SIZE = 37;
const JOB_HAS_PRIORITY = 1;
const EVENTS_FROM_START = 1;
const EVENTS_AT_ONCE = 2;

const opaque = ['segment', 'producer', 'worker', 'job', 'admin', 'observer', 'events', 'prepared'];
for (const name of opaque) koffi.opaque(`ojs_shm_${name}`);

koffi.struct('ojs_shm_text', { data: 'void*', size: 'size_t' });

const structs = {
  error: {
    message: 'const char*', subject: 'const char*', unit: 'const char*', depth: 'uint64_t', bound: 'uint64_t',
    code: 'int32_t', reserved: 'uint32_t',
  },
  segment_options: {
    convention: 'const char*', group: 'const char*', size_bytes: 'uint64_t', retention_ms: 'uint64_t',
    slots: 'uint32_t', max_queues: 'uint32_t', max_body_bytes: 'uint32_t', max_handles: 'uint32_t', mode: 'uint32_t',
    reserved: 'uint32_t',
  },
  retry: {
    coefficient: 'double', max_attempts: 'uint32_t', initial_ms: 'uint32_t', max_ms: 'uint32_t', backoff: 'uint32_t',
    flags: 'uint32_t', reserved: 'uint32_t',
  },
  job_spec: {
    type: 'const char*', args: 'const char*', args_size: 'size_t', queue: 'const char*', id: 'const char*',
    extra: 'const char*', extra_size: 'size_t', retry: 'ojs_shm_retry*', priority: 'int64_t',
    scheduled_at_ms: 'uint64_t', expires_at_ms: 'uint64_t', timeout_ms: 'uint32_t', lease_ms: 'uint32_t',
    flags: 'uint32_t', reserved: 'uint32_t',
  },
  job_fields: {
    id: 'ojs_shm_text', type: 'ojs_shm_text', args: 'ojs_shm_text', extra: 'ojs_shm_text', queue: 'ojs_shm_text',
    priority: 'int64_t', fence: 'uint64_t', created_at_ms: 'uint64_t', enqueued_at_ms: 'uint64_t',
    started_at_ms: 'uint64_t', deadline_ms: 'uint64_t', timeout_ms: 'uint32_t', attempt: 'uint32_t',
    max_attempts: 'uint32_t', reserved: 'uint32_t',
  },
  worker_options: {
    queues: 'const char**', queue_count: 'size_t', lease_ms: 'uint32_t', spin_us: 'uint32_t', flags: 'uint32_t',
    reserved: 'uint32_t',
  },
  failure: {
    code: 'const char*', message: 'const char*', type: 'const char*', details: 'const char*', details_size: 'size_t',
    flags: 'uint32_t', reserved: 'uint32_t',
  },
  nack_outcome: { next_attempt_at_ms: 'uint64_t', retry_delay_ms: 'uint32_t', state: 'uint32_t' },
  queue_settings: { max_depth: 'uint64_t', max_size_bytes: 'uint64_t', paused: 'uint32_t', set: 'uint32_t' },
  job_filter: { queue: 'const char*', type: 'const char*', limit: 'uint64_t', state: 'uint32_t', flags: 'uint32_t',
    tenant: 'const char*', priority: 'int64_t', created_before_ms: 'uint64_t', ended_from_ms: 'uint64_t', ended_before_ms: 'uint64_t',
    error_type: 'const char*' },
  args: { args: 'const char*', args_size: 'size_t', priority: 'int64_t', flags: 'uint32_t', reserved: 'uint32_t' },
  event_options: {
    after: 'const char*', after_position: 'uint64_t', types: 'const char**', type_count: 'size_t', queues: 'const char**',
    queue_count: 'size_t', jobs: 'const char**', job_count: 'size_t', job_types: 'const char**', job_type_count: 'size_t',
    tenant: 'const char*', flags: 'uint32_t', reserved: 'uint32_t',
  },
  bulk_report: { matched: 'uint64_t', done: 'uint64_t', skipped: 'uint64_t' },
};
for (const [name, members] of Object.entries(structs)) {
  koffi.struct(`ojs_shm_${name}`, { struct_size: 'size_t', ...members });
}

/// A struct of the ABI: what is not named is zero, which means the default.
function sized(name, members = {}) {
  return { struct_size: koffi.sizeof(`ojs_shm_${name}`), ...members };
}

class OjsError extends Error {}

class Library {
  /// Loads the library and declares every entry of the header as a method without the prefix.
  constructor(libraryPath, headerPath) {
    const loaded = koffi.load(libraryPath);
    const headers = ['.h', '_jobs.h', '_observer.h'].map((ending) => headerPath.replace(/\.h$/, ending));
    const header = headers.map((path) => fs.readFileSync(path, 'utf8')).join('\n').replace(/\/\/.*$/gm, '');
    for (const [, prototype] of header.matchAll(/^OJS_SHM_API ([^;]+);/gm)) {
      const declared = prototype
        .replace(/\s+/g, ' ')
        .replace(/(?<!const )char\* (buffer|ids?)/g, '_Out_ $&')
        .replace(/ojs_shm_(error|job_fields|nack_outcome|bulk_report)\* \w+/g, '_Inout_ $&')
        .replace(/(ojs_shm_\w+\*\*|u?int64_t\*) \w+/g, '_Out_ $&')
        .replace(/\* const\*/g, '**');
      const name = /ojs_shm_(\w+)\(/.exec(declared)[1];
      this[name] = loaded.func(declared);
    }
    this.check(null, this.check_abi(ABI_VERSION));
  }

  /// The value of a call, or an exception with the code's name, the text and the numbers behind it.
  check(handle, value) {
    if (value >= 0) return value;
    const detail = sized('error');
    this.last_error_detail(handle, detail);
    const error = new OjsError(detail.code === value ? detail.message : this.strerror(value));
    if (detail.code === value) {
      Object.assign(error, { subject: detail.subject, unit: detail.unit, depth: detail.depth, bound: detail.bound });
    }
    error.code = this.code_name(value);
    throw error;
  }

  /// Calls an entry that makes a handle, which it returns.
  open(entry, ...args) {
    const made = [null];
    this.check(null, this[entry](...args, made));
    return made[0];
  }

  /// Calls an entry that ends with (buffer, size) and returns its text.
  text(handle, entry, ...args) {
    const buffer = Buffer.alloc(1024);
    return this.whole_text(handle, buffer, this[entry](handle, ...args, buffer, buffer.length));
  }

  /// The same on another thread, so that a long wait leaves the event loop alone.
  async text_async(handle, entry, ...args) {
    const buffer = Buffer.alloc(1024);
    const length = await this.run_async(entry, handle, ...args, buffer, buffer.length);
    return this.whole_text(handle, buffer, length);
  }

  run_async(entry, ...args) {
    return util.promisify(this[entry].async)(...args);
  }

  whole_text(handle, buffer, length) {
    this.check(handle, length);
    if (length >= buffer.length) {
      buffer = Buffer.alloc(length + 1);
      this.last_text(handle, buffer, buffer.length);
    }
    return buffer.toString('utf8', 0, length);
  }

  /// The next event as a text, or null when there is none now.
  next_event_or_null(events) {
    try {
      return this.text(events, 'next_event');
    } catch (error) {
      if (error.code === 'empty') return null;
      throw error;
    }
  }

  /// Puts a job with these args into a queue and returns its id.
  enqueue_job(producer, type, args, options = {}) {
    const spec = sized('job_spec', { type, args: JSON.stringify(args), ...options });
    if (options.priority !== undefined) spec.flags = (spec.flags ?? 0) | JOB_HAS_PRIORITY;
    const id = Buffer.alloc(ID_SIZE);
    this.check(producer, this.enqueue(producer, spec, id));
    return id.toString('latin1', 0, ID_SIZE - 1);
  }

  /// What a fetched job is, copied out of its handle.
  read_job(job) {
    const fields = sized('job_fields');
    this.check(job, this.job_read(job, fields));
    for (const [name, value] of Object.entries(fields)) {
      if (value?.data !== undefined) fields[name] = value.size ? koffi.decode(value.data, 'char', value.size) : '';
    }
    return { ...fields, args: JSON.parse(fields.args) };
  }
}

module.exports = { Library, OjsError, sized, ID_SIZE, EVENTS_FROM_START, EVENTS_AT_ONCE };
