// SPDX-License-Identifier: Apache-2.0
//
// The frame: which view is shown, the way between views, how the connection stands, what was done.
import { Component, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { token } from './api.js';
import { repaint } from './chart.js';
import { html } from './html.js';
import { ask, Question } from './parts.js';
import { changed, dismiss, enter, state, useStore } from './store.js';
import { Crons } from './views/crons.js';
import { DeadLetters } from './views/dead_letters.js';
import { Events } from './views/events.js';
import { Job } from './views/job.js';
import { Jobs } from './views/jobs.js';
import { Limits } from './views/limits.js';
import { Overview } from './views/overview.js';
import { Queue, Queues } from './views/queues.js';
import { Tenants } from './views/tenants.js';
import { Unique } from './views/unique.js';
import { Waits } from './views/waits.js';
import { Workers } from './views/workers.js';
import { Workflow, Workflows } from './views/workflows.js';
import { clock, duration } from './words.js';
import './style.css';

const VIEWS = [
  { path: '', name: 'Overview', key: 'o', view: Overview },
  { path: 'queues', name: 'Queues', key: 'q', view: Queues, one: Queue },
  { path: 'workers', name: 'Workers', key: 'w', view: Workers },
  { path: 'jobs', name: 'Jobs', key: 'j', view: Jobs, one: Job },
  { path: 'unique', name: 'Unique jobs', key: 'u', view: Unique },
  { path: 'workflows', name: 'Workflows', key: 'f', view: Workflows, one: Workflow },
  { path: 'cron', name: 'Cron', key: 'c', view: Crons },
  { path: 'dead', name: 'Dead letters', key: 'd', view: DeadLetters },
  { path: 'events', name: 'Events', key: 'e', view: Events },
  { path: 'waits', name: 'Waits', key: 'h', view: Waits },
  { path: 'tenants', name: 'Tenants', key: 't', view: Tenants },
  { path: 'limits', name: 'Limits', key: 'l', view: Limits },
];

/** "#/jobs/ID?queue=a" -> {view, name: "ID", query}. */
function place() {
  const [path, search = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [first, ...rest] = path.split('/');
  const found = VIEWS.find((each) => each.path === first) ?? VIEWS[0];
  let name = rest.join('/');
  try {
    name = decodeURIComponent(name);
  } catch {
    name = '';
  }
  return { found, name, query: Object.fromEntries(new URLSearchParams(search)) };
}

function usePlace() {
  const [at, setAt] = useState(place);
  useEffect(() => {
    const moved = () => setAt(place());
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, []);
  return at;
}

function Connection() {
  const [, again] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => again((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const { link, sample, lostAt } = state;
  if (link === 'lost')
    return html`<p class="alarm" role="alert">
      The connection to the gateway is lost. These are the numbers of ${sample ? clock(sample.at) : 'before'},
      ${' '}${duration(Date.now() - lostAt)} ago; the page tries again by itself.
    </p>`;
  if (!sample) return null;
  const { broker, supervisor } = sample.segment;
  if (supervisor !== 'alive')
    return html`<p class="alarm" role="alert">
      No process supervises the segment (broker: ${broker}). Jobs go on; due times and repairs wait.
    </p>`;
  return null;
}

function Notices() {
  return html`<div class="notices" role="status">
    ${state.notices.map(
      (notice) => html`<p key=${notice.id} class=${notice.wrong ? 'wrong' : ''}>
        <span>${notice.text}</span>
        ${notice.undo &&
        html`<button onClick=${() => { dismiss(notice.id); notice.undo(); }}>Undo</button>`}
        <button aria-label="Dismiss" onClick=${() => dismiss(notice.id)}>×</button>
      </p>`,
    )}
  </div>`;
}

function Door() {
  const submit = (event) => {
    event.preventDefault();
    token.set(event.target.elements.token.value.trim());
    enter();
  };
  if (state.entry !== 'token')
    return html`<main class="door"><h1>ojs-shm</h1>
      <p role="status">${state.entry === 'asking' ? 'Asking the gateway …' : 'The gateway does not answer. The page tries again by itself.'}</p>
    </main>`;
  return html`<main class="door">
    <h1>ojs-shm</h1>
    <form onSubmit=${submit}>
      <label>Token of this gateway
        <input name="token" type="password" autocomplete="off" required autofocus />
      </label>
      ${token.get() && html`<p class="problem" role="alert">The gateway does not know this token.</p>`}
      <button class="first" type="submit">Open</button>
      <p class="quiet">It stays in this tab until the tab is closed. Its scopes decide what the page offers.</p>
    </form>
  </main>`;
}

/** A view that fails leaves the others to be used. */
class Guard extends Component {
  componentDidCatch(problem) {
    console.error(problem);
    this.setState({ problem });
  }
  render({ children }, { problem }) {
    return problem ? html`<p class="problem" role="alert">This view failed: ${String(problem.message)}. Load the page again.</p>` : children;
  }
}

const KEYS = [
  ['?', 'these keys'],
  ['/', 'to the filter of the view'],
  ...VIEWS.map((each) => [`g ${each.key}`, each.name]),
];

/** Keys of letters do nothing while something is typed. */
function useKeys() {
  useEffect(() => {
    let going = false;
    const pressed = (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
      const view = going && VIEWS.find((each) => each.key === event.key);
      going = event.key === 'g';
      if (view) location.hash = `#/${view.path}`;
      else if (event.key === '/') document.querySelector('[data-filter]')?.focus();
      else if (event.key === '?')
        ask({
          title: 'Keys',
          text: html`<dl class="keys">${KEYS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>`,
        });
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
}

const THEMES = { system: 'light dark', light: 'light', dark: 'dark' };
function useTheme() {
  const [theme, setTheme] = useState(() => localStorage.getItem('ojs-shm-theme') ?? 'system');
  useEffect(() => {
    document.documentElement.style.colorScheme = THEMES[theme] ?? THEMES.system;
    localStorage.setItem('ojs-shm-theme', theme);
    repaint();
  }, [theme]);
  useEffect(() => {
    const asked = matchMedia('(prefers-color-scheme: dark)');
    asked.addEventListener('change', repaint);
    return () => asked.removeEventListener('change', repaint);
  }, []);
  return [theme, setTheme];
}

function Page() {
  const { found, name, query } = usePlace();
  const { access, entry, link, sample } = useStore();
  const [theme, setTheme] = useTheme();
  const heading = useRef();
  const first = useRef(true);
  useKeys();
  const title = name ? `${found.name}: ${name}` : found.name;
  useEffect(() => {
    document.title = `${title} · ${access?.segment ?? 'ojs-shm'}`;
    // Who reads with the ears hears where the link has led.
    if (!first.current) heading.current?.focus();
    first.current = false;
  }, [title]);
  useEffect(() => {
    // On a narrow screen the views are a line that scrolls.
    const here = document.querySelector('header nav [aria-current]');
    const line = here?.closest('ul');
    if (line) line.scrollLeft = here.offsetLeft - line.offsetLeft - 24;
  }, [title, entry]);
  if (entry !== 'open') return html`<${Door} />`;
  const View = name && found.one ? found.one : found.view;
  return html`
    <a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); heading.current.focus(); }}>
      To the content
    </a>
    <header>
      <div class="brand"><img src="icon.svg" alt="" width="24" height="24" />
        <b><bdi>${access.segment}</bdi></b>
        <span class=${`link ${link}`} role="status">${link === 'live' ? 'live' : link}</span>
      </div>
      <nav aria-label="Views"><ul>
        ${VIEWS.map((each) => html`<li>
          <a href=${`#/${each.path}`} aria-current=${each === found ? 'page' : undefined}>${each.name}</a>
        </li>`)}
      </ul></nav>
      <div class="tools">
        <label class="theme"><span class="unseen">Colours</span>
          <select value=${theme} onChange=${(event) => setTheme(event.target.value)}>
            ${Object.keys(THEMES).map((each) => html`<option value=${each}>${each}</option>`)}
          </select>
        </label>
        ${access.tokens && html`<button onClick=${() => { token.set(''); state.entry = 'token'; changed(); enter(); }}>Leave</button>`}
      </div>
    </header>
    <${Connection} />
    <main id="content">
      <h1 ref=${heading} tabindex="-1">${name && found.one ? html`${found.name}: <bdi class="foreign">${name}</bdi>` : found.name}</h1>
      ${sample ? html`<${Guard} key=${found.path + name}><${View} name=${name} query=${query} /></${Guard}>` : html`<p class="quiet">Waiting for the first numbers …</p>`}
    </main>
    <footer>
      ojs-shm ${access.version} · ${access.scopes.join(', ')} · <a href="licences.txt">licences</a> · keys: <kbd>?</kbd>
    </footer>
    <${Notices} />
    <${Question} />`;
}

render(html`<${Page} />`, document.getElementById('page'));
enter();
