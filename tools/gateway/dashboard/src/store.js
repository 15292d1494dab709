// SPDX-License-Identifier: Apache-2.0
//
// What the page knows of the segment: the latest look, what came before it, and whether the connection lives.
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, listen, Refused } from './api.js';

const HOUR_MS = 3_600_000;

export const state = {
  access: null, // {tokens, scopes, segment, version}
  entry: 'asking', // "asking", "open", "token", "unreachable"
  link: 'connecting', // "live", "lost", "away"
  lostAt: 0,
  stats: null, // the latest look: GET admin/stats with a `sample`
  sample: null, // the census in it
  before: null, // the look of about five seconds ago, for rates
  marks: [], // {at, ...}: rates and gauges over the last hour, oldest first
  notices: [],
};

const watchers = new Set();
export function changed() {
  for (const each of watchers) each();
}

/** Draws the component again whenever something came. */
export function useStore() {
  const [, again] = useState(0);
  useEffect(() => {
    const watcher = () => again((n) => n + 1);
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  }, []);
  return state;
}

export const may = (scope) => state.access?.scopes.includes(scope) ?? false;

let notices = 0;
/** A sentence at the foot of the page; `undo` makes it as it was. */
export function notify(text, { undo, wrong = false } = {}) {
  const notice = { id: ++notices, text, undo, wrong };
  state.notices = [...state.notices.slice(-2), notice];
  changed();
  setTimeout(() => dismiss(notice.id), wrong ? 20_000 : 12_000);
}
export function dismiss(id) {
  state.notices = state.notices.filter((each) => each.id !== id);
  changed();
}

/** Does what a person asked for, and says how it went. */
export async function act(action, done, undo) {
  try {
    const reply = await action();
    notify(typeof done === 'function' ? done(reply) : done, {
      undo: undo && (() => act(undo.action, undo.done)),
    });
    touched();
    return reply;
  } catch (problem) {
    notify(`Not done: ${problem.message}`, { wrong: true });
    return null;
  }
}

// --- The stream ------------------------------------------------------------------------------------------------------

const recent = []; // looks of the last seconds
let session = null;

/** Begins, or begins anew with another token. */
export async function enter() {
  session?.abort();
  session = new AbortController();
  const { signal } = session;
  recent.length = 0;
  for (let wait = 500; ; wait = Math.min(wait * 2, 4_000)) {
    try {
      state.access = await call('admin/access', { signal });
      break;
    } catch (problem) {
      if (signal.aborted) return;
      state.access = null;
      state.entry = problem instanceof Refused && problem.status === 401 ? 'token' : 'unreachable';
      changed();
      if (state.entry === 'token') return;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
  state.entry = 'open';
  changed();
  await readHistory(signal);
  listen('admin/stats/stream', {
    signal,
    silence: 5_000,
    resume: false,
    tell: (event) => event.type === 'metrics' && take(JSON.parse(event.data)),
    state: (link) => {
      if (link === 'refused') {
        state.entry = 'token';
      } else {
        if (link === 'lost' && state.link !== 'lost') state.lostAt = Date.now();
        // What was missed meanwhile.
        if (link === 'live' && ['lost', 'away'].includes(state.link)) readHistory(signal);
        state.link = link;
      }
      changed();
    },
  });
}

/** A point of the history as the charts draw it: counters by the second, times in seconds. */
function markOf(point) {
  const seconds = point.span_ms / 1000 || 1;
  return {
    at: Date.parse(point.timestamp),
    enqueued: point.enqueued / seconds,
    dispatched: point.dispatched / seconds,
    completed: point.processed / seconds,
    // What the stream's counters call "failed" are jobs; in the history that word counts attempts.
    failed: Math.max(point.failed - point.retried, 0) / seconds,
    retried: point.retried / seconds,
    depth: point.depth,
    active: point.active,
    dead: point.dead,
    oldest: point.oldest_age_ms / 1000,
    waitedHalf: point.latency_p50_ms / 1000,
    waitedMost: point.latency_p99_ms / 1000,
    memory: point.bytes_used / point.bytes_total,
    deaths: point.deaths_total,
    repairs: point.repairs_total,
  };
}

async function readHistory(signal) {
  try {
    const history = await call('admin/stats/history?period=5s', { signal });
    recent.length = 0;
    state.marks = history.data.map(markOf);
    changed();
  } catch {
    // The charts begin now.
  }
}

/** What one queue did, oldest first, by periods of "5s", "1m" or "1h"; asked for again every five seconds. */
export function usePast(queue, period) {
  const path = `admin/stats/history?queue=${encodeURIComponent(queue)}&period=${period}`;
  const [past, setPast] = useState({ path: '', marks: [], problem: null });
  useEffect(() => {
    const gone = new AbortController();
    const { signal } = gone;
    let timer;
    const ask = async () => {
      try {
        const history = await call(path, { signal });
        setPast({ path, marks: history.data.map(markOf), problem: null });
      } catch (problem) {
        if (!signal.aborted) setPast((old) => ({ path, marks: old.path === path ? old.marks : [], problem }));
      }
      if (!signal.aborted) timer = setTimeout(ask, 5_000);
    };
    ask();
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [path]);
  return past.path === path ? past : { path, marks: [], problem: null, waiting: true };
}

const sum = (list, pick) => list.reduce((total, each) => total + pick(each), 0);

function take(stats) {
  const { sample } = stats;
  const at = Date.parse(sample.at);
  if (recent.length && at < recent[recent.length - 1].at) recent.length = 0;
  recent.push({ at, sample });
  while (recent.length > 2 && at - recent[1].at >= 5_000) recent.shift();
  state.stats = stats;
  state.sample = sample;
  state.before = recent.length > 1 ? recent[0] : null;
  // Over the same 5 seconds as the history's periods; the first samples may lie close together.
  const first = recent[0];
  if (at - first.at >= 1_000) {
    const per = (name) => ((sample.totals[name] ?? 0) - (first.sample.totals[name] ?? 0)) / ((at - first.at) / 1000);
    state.marks.push({
      at,
      enqueued: per('enqueued'),
      dispatched: per('dispatched'),
      completed: per('completed'),
      failed: per('failed'),
      retried: per('retried'),
      depth: sum(sample.queues, (queue) => queue.depth),
      active: sum(sample.queues, (queue) => queue.active),
      dead: sum(sample.queues, (queue) => queue.dead_letters),
      oldest: sample.queues.reduce((most, queue) => Math.max(most, queue.oldest_age_ms), 0) / 1000,
      memory: sample.segment.bytes_used / sample.segment.bytes_total,
      deaths: sample.segment.counters.deaths ?? 0,
      repairs: sample.segment.counters.repairs ?? 0,
    });
    const stale = state.marks.findIndex((mark) => mark.at >= at - HOUR_MS);
    if (stale > 0) state.marks.splice(0, stale);
  }
  changed();
}

/** How fast a counter of a queue, or of all, grew over the last seconds. */
export function rateOf(counter, queue) {
  const { sample, before } = state;
  if (!sample || !before) return undefined;
  const of = (look) =>
    (queue ? look.queues.find((each) => each.name === queue) : look)?.totals[counter] ?? 0;
  return (1000 * (of(sample) - of(before.sample))) / (Date.parse(sample.at) - before.at);
}

/** The segment's present time, by its own clock. */
export const now = () => state.sample?.at ?? new Date().toISOString();

// --- Lists that the stream does not have -----------------------------------------------------------------------------

let touches = 0;
/** Whatever is shown is asked for again at once. */
export function touched() {
  touches++;
  changed();
}

function print() {
  const { sample } = state;
  if (!sample) return '';
  const queues = sample.queues.map((each) => [each.name, each.paused, each.dead_letters, each.by_state]);
  return JSON.stringify([sample.totals, queues]);
}

/**
 * What the gateway answers, asked again when the numbers of the segment have changed: at most once a second, and
 * seldom enough that asking takes a tenth of the time. With `always` also when no number has changed.
 */
export function useAnswer(path, { ask = call, live = true, always = false } = {}) {
  useStore();
  const [answer, setAnswer] = useState({ path: '', data: null, problem: null });
  const last = useRef({ path: '', print: '', touches: 0, next: 0, busy: null });
  const [round, setRound] = useState(0);
  useEffect(() => () => last.current.busy?.abort(), []);
  useEffect(() => {
    const known = last.current;
    if (!path) return;
    const fresh = known.path !== path || known.touches !== touches;
    if (known.busy && !fresh) return;
    const seen = print();
    if (!fresh && (!live || Date.now() < known.next || (!always && seen === known.print))) return;
    known.busy?.abort();
    const busy = new AbortController();
    Object.assign(known, { path, print: seen, touches, busy });
    const begun = Date.now();
    ask(path, { signal: busy.signal })
      .then((data) => setAnswer({ path, data, problem: null }))
      .catch((problem) => {
        known.print = '';
        if (!busy.signal.aborted) setAnswer((old) => ({ path, data: old.path === path ? old.data : null, problem }));
      })
      .finally(() => {
        if (known.busy !== busy) return;
        known.busy = null;
        known.next = Date.now() + Math.max(1_000, 10 * (Date.now() - begun));
        if (known.touches !== touches) setRound(round + 1);
      });
  });
  return answer.path === path ? answer : { data: answer.data, problem: null, waiting: true };
}
