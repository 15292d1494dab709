// SPDX-License-Identifier: Apache-2.0
//
// Requests to the gateway that served this page. The token goes in a header that no other page can set,
// so no other page can act in its name.

const BASE = 'ojs/v1/'; // beside the page, also where a proxy has it below a folder
const KEY = 'ojs-shm-token';

export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `the gateway answered ${status}`);
    this.status = status;
    this.code = error?.code;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? '',
  set: (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

function headers(more) {
  const bearer = token.get();
  return bearer ? { Authorization: `Bearer ${bearer}`, ...more } : { ...more };
}

async function answer(path, { method = 'GET', body, signal } = {}) {
  const reply = await fetch(BASE + path, {
    method,
    signal,
    headers: headers(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
  });
  const text = await reply.text();
  if (!reply.ok) {
    let error;
    try {
      error = JSON.parse(text).error;
    } catch {
      // Not the gateway's own words: the status has to do.
    }
    throw new Refused(reply.status, error);
  }
  return text;
}

export async function call(path, options) {
  const text = await answer(path, options);
  return text ? JSON.parse(text) : null;
}

/** Keeps numbers that a double cannot hold as they were written, where the browser can. */
export async function callExact(path, options) {
  const text = await answer(path, options);
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) =>
    typeof value === 'number' && context && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value);
}

/**
 * Reads server-sent events until the signal ends it; `tell` gets {id, type, data}. Comes back by itself when
 * the connection is lost, behind the last event that it has seen. `state` is told "live", "lost", "refused", and "away"
 * while the tab is not seen: a browser has six connections to a gateway for all its tabs together.
 */
export async function listen(path, { tell, state = () => {}, signal, silence = 20_000, resume = true }) {
  let last = '';
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 4_000)) {
    if (document.hidden) {
      state('away');
      await seen(signal);
      if (signal.aborted) return;
    }
    const own = new AbortController();
    const end = () => own.abort();
    const turned = () => document.hidden && own.abort();
    signal.addEventListener('abort', end);
    document.addEventListener('visibilitychange', turned);
    let timer;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(end, silence);
    };
    try {
      heard();
      const more = last && resume ? { 'Last-Event-ID': last } : {};
      const reply = await fetch(BASE + path, {
        headers: headers({ Accept: 'text/event-stream', ...more }),
        signal: own.signal,
        cache: 'no-store',
        credentials: 'omit',
      });
      if (!reply.ok) throw new Refused(reply.status);
      state('live');
      wait = 500;
      for await (const event of events(reply.body, heard)) {
        if (event.id) last = event.id;
        if (event.data) tell(event);
      }
    } catch (problem) {
      if (problem instanceof Refused && problem.status < 500 && !signal.aborted) {
        state('refused', problem);
        return;
      }
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      document.removeEventListener('visibilitychange', turned);
      own.abort();
    }
    if (signal.aborted) return;
    if (document.hidden) continue;
    state('lost');
    await new Promise((resolve) => {
      setTimeout(resolve, wait);
      signal.addEventListener('abort', resolve, { once: true });
    });
  }
}

function seen(signal) {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener('visibilitychange', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', look, { once: true });
  });
}

async function* events(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    rest += value;
    const blocks = rest.split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const event = { id: '', type: 'message', data: '' };
      for (const line of block.split('\n')) {
        const colon = line.indexOf(':');
        const text = line.slice(colon + 1).trimStart();
        if (line.startsWith('id:')) event.id = text;
        else if (line.startsWith('event:')) event.type = text;
        else if (line.startsWith('data:')) event.data += text;
      }
      yield event;
    }
  }
}

/** `?a=b` of what is set. */
export function query(values) {
  const set = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  return set.length ? '?' + new URLSearchParams(set) : '';
}

export const part = encodeURIComponent;
