// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from 'preact/hooks';
import { call, part, query as queryOf } from '../api.js';
import { flatten, layout } from '../graph.js';
import { html } from '../html.js';
import { ask, Bar, Foreign, JobLink, Pages, Pending, PER_PAGE, StateBadge, Table, Tile } from '../parts.js';
import { act, may, now, useAnswer } from '../store.js';
import { distance, number } from '../words.js';

const total = (flow) => flow.steps_total ?? flow.jobs_total ?? flow.metadata?.job_count ?? flow.steps?.length ?? 0;
const done = (flow) => flow.steps_completed ?? flow.jobs_completed ?? flow.metadata?.completed_count ?? 0;
const begun = (flow) => flow.created_at ?? flow.metadata?.created_at;
const runs = (flow) => ['running', 'pending', 'active'].includes(flow.state);

const STATES = ['running', 'completed', 'failed', 'cancelled'];

export function Workflows({ query }) {
  const [behind, setBehind] = useState([]);
  useEffect(() => setBehind([]), [query.state]);
  const answer = useAnswer(`workflows${queryOf({ state: query.state, cursor: behind[behind.length - 1], limit: PER_PAGE })}`);
  if ([404, 405, 422].includes(answer.problem?.status)) return html`<p class="quiet">This gateway offers no workflows.</p>`;
  const { items = [], pagination = {} } = answer.data ?? {};
  return html`
    <div class="filters">
      <label>State <select data-filter value=${query.state ?? ''} onChange=${(event) => { location.hash = `#/workflows${queryOf({ state: event.target.value })}`; }}>
        <option value="">all</option>${STATES.map((each) => html`<option value=${each}>${each}</option>`)}
      </select></label>
    </div>
    <${Pending} answer=${answer} />
    <${Table} caption="Workflows" rows=${items} id=${(flow) => flow.id} empty=${!answer.data ? '…' : query.state ? 'No workflow is in this state.' : 'The segment has no workflow.'} columns=${[
      { head: 'Workflow', cell: (flow) => html`<a class="mono" href=${`#/workflows/${part(flow.id)}`} >${flow.id}</a>` },
      { head: 'Name', by: (flow) => flow.name ?? '', cell: (flow) => html`<${Foreign} text=${flow.name ?? '–'} />` },
      { head: 'Kind', cell: (flow) => flow.type ?? 'graph' },
      { head: 'State', by: (flow) => flow.state, cell: (flow) => html`<${StateBadge} state=${flow.state} />` },
      { head: 'Done', cell: (flow) => html`<${Bar} share=${total(flow) ? done(flow) / total(flow) : 0} label=${`${number(done(flow))} of ${number(total(flow))}`} />` },
      { head: 'Begun', right: true, by: (flow) => begun(flow) ?? '', cell: (flow) => distance(begun(flow), now()) },
    ]} />
    <${Pages} answer=${answer} behind=${behind} setBehind=${setBehind} more=${pagination.next_cursor} />`;
}

async function cancel(flow) {
  const yes = await ask({
    title: 'Cancel this workflow?', action: 'Cancel it', danger: true,
    text: 'Steps that have not begun never will; those that run may end. This cannot be undone.',
  });
  if (yes) act(() => call(`workflows/${part(flow.id)}`, { method: 'DELETE' }), 'The workflow is cancelled.');
}

const short = (text, most = 20) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

const MOST_STEPS = 100;
const MOST_LINES = 500;
/** Steps as boxes, an arrow to each from what it waits for. The table below says the same in words, and of all. */
function Graph({ steps }) {
  const { boxes, lines, width, height } = layout(steps.slice(0, MOST_STEPS));
  const [left, hidden] = [steps.length - boxes.length, lines.length - MOST_LINES];
  return html`
  ${(left > 0 || hidden > 0) && html`<p class="quiet">Drawn are the first ${number(boxes.length)} steps${left > 0 ? ` of ${number(steps.length)}` : ''}${hidden > 0 ? `, and ${number(MOST_LINES)} of the ${number(lines.length)} arrows between them` : ''}. The table below lists all.</p>`}
  <div class="scroll" role="region" aria-label="Graph of the workflow" tabindex="0">
    <svg class="graph" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="img"
      aria-label=${`${steps.length} steps; the table below lists what each waits for`}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" /></marker></defs>
      ${lines.slice(0, MOST_LINES).map((line) => html`<path key=${line.key} class="edge" d=${line.path} marker-end="url(#arrow)" />`)}
      ${boxes.map(({ step, x, y, w, h }) => html`<g key=${step.key} class=${`step ${step.state}`}>
        <rect x=${x} y=${y} width=${w} height=${h} rx="6" />
        <text x=${x + 10} y=${y + 19} class="name">${short(step.name)}</text>
        <text x=${x + 10} y=${y + 37}>${short(step.type, 14)} · ${step.state}</text>
      </g>`)}
    </svg>
  </div>`;
}

const NAMED = 6;
const listed = (names) => names.slice(0, NAMED).join(', ') + (names.length > NAMED ? ` and ${number(names.length - NAMED)} more` : '');

export function Workflow({ name }) {
  const answer = useAnswer(`workflows/${part(name)}`);
  const flow = answer.data?.workflow ?? answer.data;
  if (answer.problem?.status === 404) return html`<p class="problem" role="alert">The segment does not have this workflow.</p>`;
  if (!flow) return html`<${Pending} answer=${answer} />`;
  const steps = flatten(flow);
  const names = new Map(steps.map((step) => [step.key, step.name]));
  const meta = flow.metadata ?? {};
  return html`
    <p><${StateBadge} state=${flow.state} /> ${flow.type ?? 'graph'} ${flow.name && html`<b><${Foreign} text=${flow.name} /></b>`}</p>
    <${Pending} answer=${answer} />
    ${may('admin') && runs(flow) && html`<div class="actions"><button class="danger" onClick=${() => cancel(flow)}>Cancel</button></div>`}
    <dl class="tiles">
      <${Tile} name="done" value=${`${number(done(flow))} of ${number(total(flow))}`} />
      <${Tile} name="failed" value=${number(meta.failed_count ?? steps.filter((step) => ['failed', 'discarded'].includes(step.state)).length)} />
      <${Tile} name="begun" value=${distance(begun(flow), now())} />
    </dl>
    ${steps.length > 0 && html`<${Graph} steps=${steps} />`}
    <${Table} caption="Steps" rows=${steps} id=${(step) => step.key} empty="No step." columns=${[
      { head: 'Step', cell: (step) => html`<${Foreign} text=${step.name} />` },
      { head: 'Type', cell: (step) => html`<${Foreign} text=${step.type} />` },
      { head: 'State', cell: (step) => html`<${StateBadge} state=${step.state} />` },
      { head: 'Waits for', cell: (step) => html`<${Foreign} text=${listed(step.after.map((key) => names.get(key))) || '–'} />` },
      { head: 'Job', cell: (step) => (step.job ? html`<${JobLink} id=${step.job} />` : '–') },
    ]} />`;
}
