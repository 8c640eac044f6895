// Headless Chromium for the tests that click. STAGEDOOR_CHROMIUM names the program;
// STAGEDOOR_SCREENSHOTS a directory to put pictures of the pages into.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const pictures = process.env.STAGEDOOR_SCREENSHOTS;

export const themes = ['light', 'dark'];
export const screens = { desktop: { width: 1200, height: 800 }, phone: { width: 360, height: 720 } };

export function launch() {
  return chromium.launch({
    executablePath: process.env.STAGEDOOR_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

// visit opens a page in a fresh browser and fails on anything it complains about.
export async function visit(t, browser, options = {}) {
  const context = await browser.newContext(options);
  t.after(() => context.close());
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (m) => { if (/Content Security Policy|Refused/.test(m.text())) complaints.push(m.text()); });
  page.on('pageerror', (e) => complaints.push(String(e)));
  t.after(() => assert.deepEqual(complaints, []));
  return page;
}

// focused waits until the field has the focus, which a browser under load gives late.
export const focused = (page, id) => page.waitForFunction((id) => document.activeElement?.id === id, id);

// picture takes one, if pictures are wanted, of a page that must fit its screen.
export async function picture(page, name) {
  const { scroll, width } = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth, width: innerWidth }));
  assert.ok(scroll <= width, `${name} is wider than the screen: ${scroll} > ${width}`);
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
}
