// SPDX-License-Identifier: Apache-2.0
//
// The jobs of a workflow and where they stand: a column for each distance from the beginning, an arrow for each edge.

const W = 170;
const H = 48;
const GAP_X = 56;
const GAP_Y = 18;
const EDGE = 8;

/** All jobs with the keys of those they wait for. A part is a job, or has parts in a chain, side by side, or by name. */
export function flatten(flow) {
  const steps = [];
  /** Adds a part that begins after those jobs; returns the keys of the jobs at its end. */
  const add = (part, key, after, label = '') => {
    const parts = part.steps ?? part.jobs;
    if (!parts) {
      const name = label + (part.name ?? part.type ?? `step ${steps.length}`);
      steps.push({ key, name, type: String(part.type ?? ''), state: String(part.state ?? 'waiting'), job: part.job_id, after });
      return [key];
    }
    if (part.type === 'chain') return parts.reduce((ends, each, i) => add(each, `${key}.${i}`, ends), after);
    const keys = new Map(parts.map((each, i) => [String(each.id ?? each.name ?? i), `${key}.${i}`]));
    const ends = parts.flatMap((each, i) => {
      const named = (each.depends_on ?? []).map((name) => keys.get(String(name))).filter(Boolean);
      return add(each, `${key}.${i}`, named.length ? named : after);
    });
    const calls = Object.entries(part.callbacks ?? {}).flatMap(([when, each]) => add(each, `${key}.${when}`, ends, `${when}: `));
    return [...ends, ...calls];
  };
  add(flow, '0', []);
  return steps;
}

/** `steps` is [{key, after: [keys], ...}]. Edges to steps that are not there are left out; a circle ends. */
export function layout(steps) {
  const byKey = new Map(steps.map((step) => [step.key, step]));
  const columns = new Map();
  const columnOf = (step, path) => {
    if (columns.has(step)) return columns.get(step);
    if (path.has(step)) return 0;
    path.add(step);
    const before = step.after.map((key) => byKey.get(key)).filter(Boolean);
    const column = before.length ? 1 + Math.max(...before.map((each) => columnOf(each, path))) : 0;
    path.delete(step);
    columns.set(step, column);
    return column;
  };
  const rows = [];
  const places = new Map();
  for (const step of steps) {
    const column = columnOf(step, new Set());
    const row = (rows[column] = (rows[column] ?? -1) + 1);
    places.set(step.key, { step, x: EDGE + column * (W + GAP_X), y: EDGE + row * (H + GAP_Y), w: W, h: H });
  }
  const lines = steps.flatMap((step) =>
    step.after.filter((key) => places.has(key)).map((key) => {
      const from = places.get(key);
      const to = places.get(step.key);
      const [x1, y1, x2, y2] = [from.x + W, from.y + H / 2, to.x - 2, to.y + H / 2];
      const bend = Math.max(20, (x2 - x1) / 2);
      return { key: `${key} ${step.key}`, path: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` };
    }),
  );
  const boxes = [...places.values()];
  const width = EDGE + Math.max(0, ...boxes.map((box) => box.x + W));
  const height = EDGE + Math.max(0, ...boxes.map((box) => box.y + H));
  return { boxes, lines, width, height };
}
