// SPDX-License-Identifier: Apache-2.0
//
// Lines over time. What a chart shows also stands beside it as a number, so its canvas needs no description of
// each point.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { html } from './html.js';

/** A canvas needs the colour itself; only an element that has it knows which of the two it is. */
function colour(name) {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const charts = new Set();
/** The page has other colours now. */
export function repaint() {
  for (const again of charts) again();
}

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500].flatMap((n) => [n, n * 1e3, n * 1e6]).sort((a, b) => a - b);

/** Of seconds: the time of day, or the day where they lie more than two days apart. */
function timesOf(ticks) {
  const days = ticks[ticks.length - 1] - ticks[0] > 172_800;
  return ticks.map((tick) => {
    const at = new Date(tick * 1000);
    return days ? at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }) : at.toLocaleTimeString('en-GB');
  });
}

/** Around one time alone uPlot would draw years. */
function fit(plot, { data: [times], from }) {
  if (times.length === 1) plot.setScale('x', { min: Math.min(from / 1000, times[0] - 30), max: times[0] + 30 });
}

/** `series` is [{name, key, colour}]; `marks` is [{at, KEY: number}], oldest first; `print` makes a number a text. */
export function Chart({ title, marks, series, print, from, whole = false, height = 160 }) {
  const box = useRef();
  const chart = useRef(null);
  const data = [marks.map((mark) => mark.at / 1000), ...series.map(({ key }) => marks.map((mark) => mark[key]))];
  const latest = useRef();
  latest.current = { data, from };

  useEffect(() => {
    const make = () => {
      chart.current?.destroy();
      // One time alone makes no line.
      const points = (each) => ({ show: (_, __, first, last) => last - first < 2, size: 6, fill: colour(each.colour) });
      const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
      chart.current = new uPlot(
        {
          width: Math.max(200, box.current.clientWidth),
          height,
          legend: { show: false },
          cursor: { drag: { x: false, y: false } },
          scales: {
            x: { time: true, range: (_, least, most) => [latest.current.from / 1000 || least, most] },
            y: { range: (_, least, most) => [Math.min(0, least), most > 0 ? most * 1.1 : 1] },
          },
          axes: [
            { ...axis, values: (_, ticks) => timesOf(ticks), space: 90, size: 28 },
            { ...axis, size: 76, incrs: whole ? WHOLE : undefined, values: (_, ticks) => ticks.map(print) },
          ],
          series: [
            {},
            ...series.map((each) => ({ label: each.name, stroke: colour(each.colour), width: 2, points: points(each) })),
          ],
        },
        latest.current.data,
        box.current,
      );
      fit(chart.current, latest.current);
    };
    make();
    charts.add(make);
    const seen = new ResizeObserver(() => {
      if (!box.current) return;
      const width = Math.max(200, box.current.clientWidth);
      if (chart.current.width !== width) chart.current.setSize({ width, height });
    });
    seen.observe(box.current);
    return () => {
      charts.delete(make);
      seen.disconnect();
      chart.current.destroy();
      chart.current = null;
    };
  }, []);

  useEffect(() => {
    if (!chart.current) return;
    chart.current.setData(latest.current.data);
    fit(chart.current, latest.current);
  }, [marks.length && marks[marks.length - 1].at, marks.length, from]);

  const last = marks[marks.length - 1];
  return html`<figure class="chart">
    <figcaption>
      <h3>${title}</h3>
      <ul class="legend">
        ${series.map(
          (each) => html`<li>
            <span class="dot" style=${{ background: `var(${each.colour})` }} aria-hidden="true"></span>
            ${each.name} <b>${last ? print(last[each.key]) : '–'}</b>
          </li>`,
        )}
      </ul>
    </figcaption>
    <div ref=${box} class="canvas" role="img" aria-label=${`${title} over time`}></div>
  </figure>`;
}
