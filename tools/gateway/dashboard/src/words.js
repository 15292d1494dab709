// SPDX-License-Identifier: Apache-2.0
//
// Numbers and times as a person reads them.

const whole = new Intl.NumberFormat('en');
const one = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export const number = (n) => (n === undefined || n === null ? '–' : whole.format(n));

export function rate(n) {
  if (n === undefined || n === null || !Number.isFinite(n)) return '–';
  return `${n >= 100 || n === 0 ? whole.format(Math.round(n)) : one.format(n)}/s`;
}

export function duration(ms) {
  if (ms === undefined || ms === null) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${one.format(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

export function bytes(n) {
  if (n === undefined || n === null) return '–';
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (n < 1024 || unit === 'GiB') return `${one.format(n)} ${unit}`;
    n /= 1024;
  }
}

export const percent = (share) =>
  share === undefined || share === null ? '–' : `${one.format(share * 100)} %`;

export function clock(time) {
  const date = new Date(time);
  return Number.isNaN(date.valueOf()) ? '–' : date.toLocaleTimeString('en-GB');
}

export function moment(time) {
  const date = new Date(time);
  if (!time || Number.isNaN(date.valueOf())) return '–';
  return `${date.toLocaleDateString('en-CA')} ${date.toLocaleTimeString('en-GB')}`;
}

/** "3 s ago", "in 2 min": seen from `now`. */
export function distance(time, now) {
  const ms = new Date(time) - new Date(now);
  if (Number.isNaN(ms)) return '';
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`;
}

const NAMES = {
  ojs: { 0: 'critical', 1: 'high', 2: 'normal', 3: 'low', 4: 'bulk' },
  qo: { 255: 'critical', 200: 'urgent', 175: 'high', 128: 'normal', 50: 'low', 10: 'background', 0: 'bulk' },
};
export function priority(n, convention) {
  const name = NAMES[convention]?.[n];
  return name ? `${n} ${name}` : String(n);
}

export function plural(n, noun) {
  return `${number(n)} ${noun}${n === 1 ? '' : 's'}`;
}
