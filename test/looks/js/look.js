// What must be true of a page in every view: axe finds nothing, it fits the screen, and what has the focus shows it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const axe = readFileSync(createRequire(new URL('../../oauth/js/', import.meta.url)).resolve('axe-core/axe.min.js'), 'utf8');
const wanted = process.env.STAGEDOOR_SCREENSHOTS;

export const all = process.env.STAGEDOOR_LOOKS === 'all';

const media = {
  light: { colorScheme: 'light', forcedColors: 'none', reducedMotion: 'reduce' },
  dark: { colorScheme: 'dark', forcedColors: 'none', reducedMotion: 'reduce' },
  forced: { colorScheme: 'dark', forcedColors: 'active', reducedMotion: 'reduce' },
};
const sizes = { 1280: { width: 1280, height: 800 }, 390: { width: 390, height: 844 } };
const views = Object.keys(media).flatMap((m) => Object.keys(sizes).map((s) => [m, s]));
// axe takes most of the time, so the short form sees one page in one medium and the next page in the next one. Those of
// its rules that depend on the medium are about colours, whose contrasts TestColoursContrastInBothThemes computes.
const short = [['light', '1280'], ['dark', '390'], ['forced', '1280']];
let looks = 0;
const rules = { runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }, resultTypes: ['violations'] };

// look fails on everything that is wrong with a page and leaves it on a desktop in the light theme.
export async function look(page, name) {
  const wrong = [];
  if (await page.evaluate('typeof axe') === 'undefined') await page.evaluate(`${axe};0`);
  for (const [medium, size] of all ? views : [short[looks++ % 3]]) {
    await page.emulateMedia(media[medium]);
    await page.setViewportSize(sizes[size]);
    // The side bar is the same on all pages.
    const context = all || name === 'account' ? { include: ['html'] } : { exclude: ['nav.side'] };
    const found = await page.evaluate(([context, rules]) => globalThis.axe.run(context, rules), [context, rules]);
    for (const v of found.violations) {
      for (const n of v.nodes) wrong.push(`${medium} ${size}: ${v.id}: ${n.target}: ${n.any.concat(n.all, n.none).map((c) => c.message).join('; ')}`);
    }
    for (const width of [1280, 390, 320]) {
      await page.setViewportSize({ ...sizes[390], width });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) wrong.push(`${medium} ${width}: the page is ${wide} pixels wider than the screen`);
    }
    await page.setViewportSize(sizes[size]);
    if (wanted) await page.screenshot({ path: `${wanted}/${name}-${medium}-${size}.png`, fullPage: true });
  }
  await page.emulateMedia(media.light);
  await page.setViewportSize(sizes[1280]);
  assert.deepEqual(wrong, [], name);
}

// rings is a function for the page: whether an element that has the focus shows it, itself, on a label or on what stands
// around it.
export const rings = `globalThis.rings = (e) => {
  const ringed = (e) => e && getComputedStyle(e).outlineStyle !== 'none' && parseFloat(getComputedStyle(e).outlineWidth) > 0;
  let around = e;
  while (around && !ringed(around)) around = around.parentElement;
  return Boolean(around) || [...e.labels ?? []].some(ringed);
};0`;

// focusShows fails unless each element that can have the focus shows it, and the first one skips the side bar. A key
// that was pressed before makes the browser show the focus that a script moves.
export async function focusShows(page) {
  await page.keyboard.press('Shift');
  await page.evaluate(rings);
  const dark = await page.evaluate(() => {
    const open = document.querySelector('dialog:modal') ?? document;
    const before = document.activeElement;
    const dark = [];
    for (const e of open.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')) {
      e.focus({ preventScroll: true });
      if (document.activeElement === e && !globalThis.rings(e)) dark.push(e.outerHTML.slice(0, 120));
    }
    before.focus({ preventScroll: true });
    const side = document.querySelector('nav.side');
    if (side && document.querySelector('a[href], button')?.hash !== '#content') dark.push('no skip link');
    return dark;
  });
  assert.deepEqual(dark, [], 'no focus is seen');
}

// weight returns the bytes of the HTML of a page, of it with its assets as they are sent, and of both uncompressed. Assets
// count whether they are cached or not.
export const weight = (page) => page.evaluate(() => {
  const html = performance.getEntriesByType('navigation')[0].decodedBodySize;
  const assets = performance.getEntriesByType('resource').filter((r) => r.name.includes('/assets/'));
  return { html, sent: assets.reduce((n, r) => n + r.encodedBodySize, html), whole: assets.reduce((n, r) => n + r.decodedBodySize, html) };
});

// firstPaint returns the milliseconds until a page is first painted.
export const firstPaint = (page) => page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime).then((h) => h.jsonValue());

// asModal opens a dialog with the keyboard, looks at it, and expects that the focus stays there and comes back.
export async function asModal(page, opener, name) {
  await opener.focus();
  await page.keyboard.press('Enter');
  const dialog = page.locator('dialog:modal');
  await dialog.waitFor();
  await look(page, name);
  await focusShows(page);
  for (let i = 0; i < 12; i++) {
    await page.keyboard.press('Tab'); // past the last element the focus is with the browser itself
    assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest('dialog:modal')), `${name}: the focus has left`);
  }
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' }).catch(() => {});
  assert.ok(await opener.evaluate((e) => document.activeElement === e), `${name}: the focus does not come back`);
}
