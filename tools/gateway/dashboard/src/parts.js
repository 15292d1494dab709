// SPDX-License-Identifier: Apache-2.0
//
// What several views are made of.
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { moment, number, percent } from './words.js';

/** Of a list that comes whole this many rows are drawn at once: the page draws what it shows once a second. */
export const MOST = 50;

/** The rows that are drawn of a list that came whole, and the way to the others. */
export function usePart(rows, name, most = MOST) {
  const [chosen, choose] = useState(0);
  const last = Math.max(0, Math.ceil(rows.length / most) - 1);
  const page = Math.min(chosen, last); // the list may have become shorter
  const begin = page * most;
  const shown = last ? rows.slice(begin, begin + most) : rows;
  const way = last > 0 && html`<nav class="pages" aria-label=${`Parts of: ${name}`}>
    <button disabled=${page === 0} onClick=${() => choose(page - 1)} aria-label=${`Previous of: ${name}`}>Previous</button>
    <span role="status">${number(begin + 1)} to ${number(begin + shown.length)} of ${number(rows.length)}</span>
    <button disabled=${page === last} onClick=${() => choose(page + 1)} aria-label=${`Next of: ${name}`}>Next</button>
  </nav>`;
  return [shown, way];
}

/**
 * A table that a narrow screen can scroll sideways. A column is {head, cell(row, n), right?, by?(row)}; n counts the rows
 * that are drawn.
 */
export function Table({ caption, columns, rows, id, empty = 'None.', order: first, most }) {
  const [order, setOrder] = useState(first ?? { column: -1, falls: false });
  const by = columns[order.column]?.by;
  let sorted = rows;
  if (by) {
    const compare = (a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0);
    sorted = [...rows].sort((a, b) => (order.falls ? compare(b, a) : compare(a, b)));
  }
  const [shown, way] = usePart(sorted, caption, most);
  const choose = (column) => () =>
    setOrder({ column, falls: order.column === column ? !order.falls : !!columns[column].right });
  const head = (column, i) => {
    const chosen = order.column === i;
    const sort = chosen ? (order.falls ? 'descending' : 'ascending') : undefined;
    return html`<th scope="col" class=${column.right ? 'right' : ''} aria-sort=${sort}>
      ${column.by
        ? html`<button class="sort" onClick=${choose(i)}>
            ${column.head}<span aria-hidden="true">${chosen ? (order.falls ? ' ↓' : ' ↑') : ''}</span>
          </button>`
        : column.head}
    </th>`;
  };
  return html`<div class="scroll" role="region" aria-label=${caption} tabindex="0">
    <table>
      <caption>${caption}</caption>
      <thead><tr>${columns.map(head)}</tr></thead>
      <tbody>
        ${shown.map(
          (row, n) => html`<tr key=${id(row)}>
            ${columns.map((column) => html`<td class=${column.right ? 'right' : ''}>${column.cell(row, n)}</td>`)}
          </tr>`,
        )}
        ${shown.length === 0 && html`<tr><td colspan=${columns.length} class="quiet">${empty}</td></tr>`}
      </tbody>
    </table>
  </div>
  ${way}`;
}

/** A word with a colour; the word alone says it too. */
export const Badge = ({ kind, children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;

const STATE_KINDS = {
  available: 'blue', active: 'green', completed: 'grey', scheduled: 'violet', pending: 'violet', waiting: 'violet',
  retryable: 'amber', cancelled: 'grey', discarded: 'red', failed: 'red', running: 'green', paused: 'amber',
  full: 'red', starving: 'red', warning: 'amber', alive: 'green', dead: 'red', stopped: 'amber', none: 'red',
  stale: 'red', silent: 'red', died: 'red', quiet: 'amber', terminate: 'amber', skipped: 'grey',
};
export const StateBadge = ({ state }) => html`<${Badge} kind=${STATE_KINDS[state] ?? 'grey'}>${state}</${Badge}>`;

/** Characters that are not seen, or that turn the direction of those around them, by their numbers. */
const plain = (text) =>
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (each) =>
    `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** What jobs brought: shown as it is, kept apart from the text around it. */
export function Foreign({ text }) {
  const shown = plain(String(text ?? '–'));
  return html`<bdi class=${`foreign ${shown.length <= 32 ? 'short' : ''}`}>${shown}</bdi>`;
}

export const JobLink = ({ id }) =>
  html`<a class="mono" href=${`#/jobs/${encodeURIComponent(id)}`} >${id}</a>`;
export const QueueLink = ({ name }) =>
  html`<a href=${`#/queues/${encodeURIComponent(name)}`}><${Foreign} text=${name} /></a>`;

/** A date and a time that stay on one line. */
export const Moment = ({ time }) => html`<span class="short">${moment(time)}</span>`;

/** A share of a whole as a bar and as a number. */
export function Bar({ share, label, kind = '' }) {
  const width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
  return html`<span class="bar">
    <span class="track" aria-hidden="true"><span class=${`fill ${kind}`} style=${{ width }}></span></span>
    <span>${label ?? percent(share)}</span>
  </span>`;
}

export function Tile({ name, value, note, kind = '' }) {
  return html`<div class=${`tile ${kind}`}>
    <dt>${name}</dt>
    <dd>${value}${note && html`<small>${note}</small>`}</dd>
  </div>`;
}

export const PER_PAGE = 50;
/** The way through a list of many pages; `behind` are the cursors of the pages before this one. */
export function Pages({ answer, behind, setBehind, more }) {
  const { items = [], pagination = {} } = answer.data ?? {};
  const first = behind.length * PER_PAGE;
  return html`<nav class="pages" aria-label="Pages">
    <button disabled=${behind.length === 0} onClick=${() => setBehind(behind.slice(0, -1))}>Previous</button>
    <span role="status">${answer.data && !answer.waiting ? `${number(items.length ? first + 1 : 0)} to ${number(first + items.length)} of ${number(pagination.total)}` : '…'}</span>
    <button disabled=${!more} onClick=${() => setBehind([...behind, pagination.next_cursor ?? 'page'])}>Next</button>
  </nav>`;
}

/** What an answer is while it is not there. */
export function Pending({ answer }) {
  if (answer.problem) return html`<p class="problem" role="alert">${answer.problem.message}</p>`;
  return answer.data ? null : html`<p class="quiet">Asking the gateway …</p>`;
}

const LONG = 20_000;
/** JSON as text. What is very long is cut until all of it is asked for. */
export function Json({ value, label }) {
  const [all, setAll] = useState(false);
  const text = plain(JSON.stringify(value, null, 2) ?? 'undefined');
  const cut = !all && text.length > LONG;
  return html`<pre tabindex="0" role="region" aria-label=${label}><code dir="ltr">${cut ? text.slice(0, LONG) : text}</code></pre>
    ${cut &&
    html`<button onClick=${() => setAll(true)}>Show all ${number(text.length)} characters</button>`}`;
}

// --- Questions -------------------------------------------------------------------------------------------------------

let show = () => {};

/**
 * Asks before something is done. Resolves to the values of its fields, or to null. A field is
 * {name, label, value, type?, min?, max?}.
 */
export const ask = (question) => new Promise((answer) => show({ fields: [], ...question, answer }));

export function Question() {
  const [question, setQuestion] = useState(null);
  const dialog = useRef();
  useEffect(() => {
    show = setQuestion;
  }, []);
  useEffect(() => {
    if (question && !dialog.current.open) dialog.current.showModal();
  }, [question]);
  if (!question) return null;
  const answered = (value) => {
    const from = dialog.current;
    if (from.open) from.close();
    setQuestion(null);
    question.answer(value);
  };
  const submit = (event) => {
    event.preventDefault();
    answered(Object.fromEntries(question.fields.map(({ name }) => [name, event.target.elements[name].value])));
  };
  return html`<dialog ref=${dialog} aria-labelledby="question" onCancel=${() => answered(null)}>
    <form method="dialog" onSubmit=${submit}>
      <h2 id="question">${question.title}</h2>
      <div>${question.text}</div>
      ${question.fields.map(
        // What is typed stays, however often the page is drawn meanwhile.
        ({ label, value, ...field }) => html`<label>${label}<input required autocomplete="off" defaultValue=${value ?? ''} ...${field} /></label>`,
      )}
      <div class="actions">
        ${question.action &&
        html`<button type="button" onClick=${() => answered(null)} autofocus=${question.fields.length === 0}>Leave it</button>`}
        <button type="submit" class=${question.danger ? 'danger' : 'first'}>${question.action ?? 'Close'}</button>
      </div>
    </form>
  </dialog>`;
}
