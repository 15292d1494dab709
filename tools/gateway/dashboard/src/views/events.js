// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from 'preact/hooks';
import { listen, query as queryOf } from '../api.js';
import { html } from '../html.js';
import { Badge, Foreign, JobLink, QueueLink, Table } from '../parts.js';
import { useAnswer, useStore } from '../store.js';
import { clock, number } from '../words.js';

const MOST = 200;
const TYPES = {
  '': 'all', 'job.*': 'jobs', 'job.failed,job.discarded,job.retrying': 'failures', 'backpressure.*': 'backpressure',
  'priority.*': 'priorities', 'worker.*': 'workers', 'queue.*': 'queues', 'workflow.*': 'workflows', 'cron.*': 'cron',
};

const kind = (type) =>
  /fail|discard|reject|dropped|died|gap/.test(type) ? 'red' : /completed|cleared/.test(type) ? 'green' : /retr|warning|cancel/.test(type) ? 'amber' : 'blue';

export function Events({ query }) {
  const { sample } = useStore();
  const [held, setHeld] = useState(false);
  const [link, setLink] = useState({});
  const [shown, setShown] = useState({ events: [], seen: 0, lost: 0 });
  const came = useRef([]);
  const stream = `events/stream${queryOf({ types: query.types, queues: query.queue })}`;
  useEffect(() => {
    setShown({ events: [], seen: 0, lost: 0 });
    came.current = [];
    const end = new AbortController();
    listen(stream, { signal: end.signal, state: (state) => setLink({ stream, state }), tell: ({ data }) => came.current.push(data) });
    // However many come, the page is drawn four times a second.
    const timer = setInterval(() => {
      const fresh = came.current.splice(0);
      if (fresh.length === 0) return;
      setShown((old) => {
        const read = fresh.slice(-MOST).map((text) => JSON.parse(text)).reverse();
        const lost = read.reduce((sum, each) => sum + (each.type === 'system.gap' ? (each.data.lost ?? 0) : 0), 0);
        return { events: [...read, ...old.events].slice(0, MOST), seen: old.seen + fresh.length, lost: old.lost + lost };
      });
    }, 250);
    return () => {
      end.abort();
      clearInterval(timer);
    };
  }, [stream]);
  const { data: config } = useAnswer('admin/system/config', { live: false });
  const [kept, setKept] = useState(null);
  const set = (name) => (event) => {
    location.hash = `#/events${queryOf({ types: query.types, queue: query.queue, [name]: event.target.value })}`;
  };
  const hold = () => {
    setKept(held ? null : shown.events);
    setHeld(!held);
  };
  const rows = kept ?? shown.events;
  // What the stream before this one was is not what this one is.
  const state = link.stream === stream ? link.state : 'connecting';
  return html`
    <div class="filters">
      <label>What <select data-filter value=${query.types ?? ''} onChange=${set('types')}>
        ${Object.entries(TYPES).map(([value, name]) => html`<option value=${value}>${name}</option>`)}
      </select></label>
      <label>Queue <select value=${query.queue ?? ''} onChange=${set('queue')}>
        <option value="">all</option>${sample.queues.map((each) => html`<option value=${each.name}>${each.name}</option>`)}
      </select></label>
      <button aria-pressed=${held} onClick=${hold}>${held ? 'Go on' : 'Hold'}</button>
      <span class="quiet" role="status">${state}, ${TYPES[query.types ?? ''] ?? query.types}: ${number(shown.seen)} since the view was opened${shown.lost ? `, ${number(shown.lost)} lost` : ''}</span>
    </div>
    ${config?.segment.events === false && html`<p class="problem">The segment does not tell events: the gateway was started with --no-events.</p>`}
    <${Table} caption=${`The latest ${MOST} events, the newest first`} rows=${rows} most=${MOST} id=${(event) => event.id ?? `${event.time} ${event.type}`} empty="Nothing has happened since the view was opened." columns=${[
      { head: 'When', cell: (event) => clock(event.time) },
      { head: 'What', cell: (event) => html`<${Badge} kind=${kind(event.type)}>${event.type}</${Badge}>` },
      { head: 'Job', cell: (event) => (event.data?.job_id ? html`<${JobLink} id=${event.data.job_id} />` : '–') },
      { head: 'Type', cell: (event) => html`<${Foreign} text=${event.data?.job_type ?? '–'} />` },
      { head: 'Queue', cell: (event) => (event.data?.queue ? html`<${QueueLink} name=${event.data.queue} />` : '–') },
      { head: 'More', cell: (event) => html`<${Foreign} text=${rest(event.data)} />` },
    ]} />`;
}

const KNOWN = new Set(['job_id', 'job_type', 'queue']);
function rest(data) {
  const members = Object.entries(data ?? {}).filter(([name]) => !KNOWN.has(name));
  return members.map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(', ').slice(0, 300);
}
