// SPDX-License-Identifier: Apache-2.0
//
// draw_dashboard.js BIN FILE.png: the dashboard over a segment at work, from a real run. FILE.txt, beside it, says which views the
// page in the picture names, and which picture that is. Needs playwright-core in NODE_PATH.
'use strict';
const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { execSync } = require('node:child_process');

const [programs, target] = process.argv.slice(2);
process.env.OJS_SHM_BIN_DIR = path.resolve(programs);
process.env.OJS_SHM_CHROMIUM = execSync('command -v chromium', { encoding: 'utf8' }).trim();
const { Segment, closeBrowser, open, openBrowser } = require('../../tests/contract/dashboard/board.js');

const SECONDS = 120;
const KINDS = [['mail.send', 'mail'], ['mail.send', 'mail'], ['image.resize', 'images'], ['report.build', 'reports']];

async function draw() {
  await openBrowser();
  const segment = await Segment.open({ broker: ['--slots', '4096'] });
  try {
    segment.native(['queue', 'set', 'mail', '--max-depth', '400']);
    await segment.registered('mailer-1', 'mail', 'sleep', '0.05');
    await segment.registered('resizer-1', 'images', 'sleep', '0.2');
    segment.enqueue({ queue: 'reports' });
    segment.native(['queue', 'pause', 'reports']);
    const page = await open(segment.url, { viewport: { width: 1200, height: 760 } });
    await page.locator('.chart').first().waitFor();
    // A load that comes and goes, until the charts have something to show.
    const begun = Date.now();
    for (let round = 0; Date.now() - begun < SECONDS * 1000; round++) {
      const jobs = 12 + Math.round(10 * Math.sin(round / 8));
      segment.enqueue(...Array.from({ length: jobs }, (_, n) => {
        const [type, queue] = KINDS[n % KINDS.length];
        return { type, queue, priority: n % 4, args: [n] };
      }));
      await page.waitForTimeout(700);
    }
    const shown = await page.locator('main').innerText();
    for (const wanted of ['mail', 'images', 'reports', 'paused', '2 registered workers', 'Memory in use'])
      if (!shown.includes(wanted)) throw new Error(`the page does not show '${wanted}'`);
    await page.screenshot({ path: target });
    const views = await page.getByRole('navigation', { name: 'Views' }).getByRole('link').allInnerTexts();
    const sum = crypto.createHash('sha256').update(fs.readFileSync(target)).digest('hex');
    fs.writeFileSync(target.replace(/\.png$/, '.txt'), [`sha256 ${sum}`, ...views, ''].join('\n'));
  } finally {
    await segment.close();
    await closeBrowser();
  }
}

draw().catch((problem) => {
  console.error(`draw_dashboard: ${problem.stack}`);
  process.exit(1);
});
