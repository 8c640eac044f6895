// Headless Chromium for the tests that click. STAGEDOOR_CHROMIUM names the program;
// STAGEDOOR_SCREENSHOTS a directory to put pictures of the pages into.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium } from 'playwright-core';

// variant is a test of the long form, STAGEDOOR_LONG=1. The short form, which CI has, sees the main ways of users.
export const long = Boolean(process.env.STAGEDOOR_LONG);
export const variant = long ? test : () => {};

const wanted = process.env.STAGEDOOR_SCREENSHOTS;

export const themes = ['light', 'dark'];
export const screens = { desktop: { width: 1200, height: 800 }, phone: { width: 360, height: 720 } };

let launched;

// launch starts the browser of all files that a process runs. The tests of one after the other have it.
export function launch() {
  launched ??= chromium.launch({
    timeout: 180_000, // as below
    executablePath: process.env.STAGEDOOR_CHROMIUM,
    // The contexts share one process, which saves the start of others.
    args: ['--renderer-process-limit=1', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  return launched;
}

// visit opens a page in a fresh context and fails on anything it complains about. Nothing on it moves unless options ask
// for that, because frames of what moves take processor time.
export async function visit(t, browser, options = {}) {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  t.after(() => context.close());
  context.setDefaultTimeout(120_000); // a busy machine takes long
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (m) => { if (/Content Security Policy|Refused/.test(m.text())) complaints.push(m.text()); });
  page.on('pageerror', (e) => complaints.push(String(e)));
  t.after(() => assert.deepEqual(complaints, []));
  return page;
}

// focused waits until the field has the focus, which a browser under load gives late.
export const focused = (page, id) => page.waitForFunction((id) => document.activeElement?.id === id, id);

// pictures lets a page show itself on both screens, the desktop last, and in both themes if pictures are wanted.
export async function pictures(page, name) {
  for (const colorScheme of wanted ? themes : themes.slice(0, 1)) {
    await page.emulateMedia({ colorScheme });
    for (const size of ['phone', 'desktop']) {
      await page.setViewportSize(screens[size]);
      await picture(page, `${name}-${colorScheme}-${size}`);
    }
  }
}

// picture takes one, if pictures are wanted, of a page that must fit its screen.
export async function picture(page, name) {
  const { scroll, width } = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth, width: innerWidth }));
  assert.ok(scroll <= width, `${name} is wider than the screen: ${scroll} > ${width}`);
  if (wanted) await page.screenshot({ path: `${wanted}/${name}.png`, fullPage: true });
}
