// What operators see and do in a browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, long, picture, themes, variant } from '../../oauth/js/chromium.js';
import { ask, film, issuer, open } from './gateway.js';

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const rows = (page, table) => page.locator(`#${table} tbody tr`);
const number = async (at) => Number((await at.textContent()).replaceAll(',', ''));

test('a request appears, counts its tokens and is ended by two clicks', async (t) => {
  const page = await open(t, browser, '/flow');
  const { done } = await ask(t, 'pace=50, tokens=100000');
  const row = rows(page, 'active').first();
  await row.locator('.tag.replying').waitFor();
  const before = await number(row.locator('td[data-label="Tokens"]'));
  await page.waitForFunction((n) => Number(document.querySelector('#active td[data-label="Tokens"]').textContent.replaceAll(',', '')) > n + 20, before);
  await row.getByRole('button').click();
  assert.equal(await row.getByRole('button').textContent(), 'Sure?');
  await row.getByRole('button').click();
  const { id, text } = await done;
  assert.match(text, /ended by an operator/);
  const ended = rows(page, 'recent').filter({ has: page.locator(`a[title="${id}"]`) });
  await ended.locator('.tag.failed', { hasText: '503' }).waitFor();
  await page.locator('#active-none').waitFor();
});

// painted waits until a place of a lane has the colour of the legend, which may be translucent in forced colours.
const painted = (page, lane, x, y, color) => page.waitForFunction(([name, x, y, color]) => {
  const read = (pen, x, y) => [...pen.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data].join();
  const pen = document.createElement('canvas').getContext('2d');
  const fill = (name) => { pen.fillStyle = getComputedStyle(document.querySelector(`#lanes .swatch.${name}`)).backgroundColor; pen.fillRect(0, 0, 9, 9); };
  if (color !== 'queue') fill('rail');
  fill(color);
  const canvas = [...document.querySelectorAll('.lane canvas')].find((c) => c.ariaLabel.includes(` ${name},`));
  return canvas && read(canvas.getContext('2d'), x, y) === read(pen, 2, 2);
}, [lane, x, y, color]);

// rail returns the colour of a rail as the legend has it.
const rail = (page) => page.evaluate(() => getComputedStyle(document.querySelector('#lanes .swatch.rail')).backgroundColor);

for (const forcedColors of long ? ['none', 'active'] : ['none']) {
  test(`a bar grows in the lane of its provider, and requests wait at its left: forced colours ${forcedColors}`, async (t) => {
    const page = await open(t, browser, '/flow', { forcedColors, reducedMotion: 'no-preference' });
    const streams = [];
    for (let i = 0; i < 3; i++) streams.push(await ask(t, 'pace=50, tokens=100000', 'n1'));
    await painted(page, 'narrow', 71, 3, 'reply');
    await painted(page, 'narrow', 71, 13, 'reply');
    await painted(page, 'narrow', 56, 3, 'queue');
    assert.equal(await page.locator('.lane', { hasText: 'narrow' }).locator('.num').first().textContent(), '2 of 2 · 1 queued');
    for (const s of streams) s.leave();
  });
}

variant('idle lanes take the colours of a theme that is chosen while the page is open', async (t) => {
  const page = await open(t, browser, '/flow', { colorScheme: 'light', reducedMotion: 'reduce' });
  for (const theme of ['Dark', 'Light', 'Dark']) {
    await painted(page, 'narrow', 100, 33, 'rail');
    const was = await rail(page);
    await page.getByRole('button', { name: theme, exact: true }).click();
    await painted(page, 'narrow', 100, 33, 'rail');
    assert.equal(await rail(page) === was, false, theme);
  }
});

variant('a bar names its key, filters by a click, and is ended by two', async (t) => {
  const page = await open(t, browser, '/flow');
  const { done } = await ask(t, 'pace=50, tokens=100000', 'n1');
  await painted(page, 'narrow', 71, 3, 'reply');
  const canvas = page.getByRole('img', { name: 'Requests to narrow,' });
  await canvas.hover({ position: { x: 71, y: 3 } });
  await page.locator('#tip b', { hasText: /^fixed$/ }).waitFor();
  await canvas.click({ position: { x: 71, y: 3 } });
  const picked = page.locator('#picked');
  await picked.getByRole('button', { name: 'Only n1' }).click();
  await page.waitForURL(`${issuer}/flow?model=n1`);
  await picked.getByRole('button', { name: 'Only fixed' }).click();
  await page.waitForURL(/[?&]key=/);
  await picked.getByRole('button', { name: /^End request/ }).click();
  await picked.getByText('Sure?').click();
  assert.match((await done).text, /ended by an operator/);
});

variant('one click ends nothing', async (t) => {
  const page = await open(t, browser, '/flow');
  const { leave } = await ask(t, 'pace=20, tokens=100000');
  const row = rows(page, 'active').first();
  await row.getByRole('button').click();
  await row.getByRole('button', { name: 'End' }).filter({ hasText: /^End$/ }).waitFor(); // after three seconds
  await row.locator('.tag.replying').waitFor();
  leave();
});

variant('filters stand in the address', async (t) => {
  const page = await open(t, browser, '/flow?phase=queued');
  assert.equal(await page.inputValue('#phase'), 'queued');
  const { leave } = await ask(t, 'pace=20, tokens=100000');
  await page.locator('[data-figure="in_flight"]', { hasText: /^1$/ }).waitFor();
  assert.equal(await rows(page, 'active').count(), 0);
  await page.selectOption('#phase', 'replying');
  await rows(page, 'active').first().waitFor();
  await page.waitForURL(`${issuer}/flow?phase=replying`);
  await page.fill('#model', 'other');
  await page.locator('#active-none').waitFor();
  await page.waitForURL(`${issuer}/flow?phase=replying&model=other`);
  await page.fill('#model', '');
  await page.fill('#text', 'M1 sandb');
  await rows(page, 'active').first().waitFor();
  await page.fill('#text', 'm1 narrow');
  await page.locator('#active-none').waitFor();
  await page.waitForURL(`${issuer}/flow?text=m1+narrow&phase=replying`);
  leave();
});

variant('the slowest requests come first, by the keyboard, and the order stands in the address', async (t) => {
  const page = await open(t, browser, '/flow');
  const fast = await ask(t, 'pace=90, tokens=100000');
  await rows(page, 'active').nth(0).locator('.tag.replying').waitFor();
  const slow = await ask(t, 'pace=2, tokens=100000', 'n1');
  const first = rows(page, 'active').first().locator('td[data-label="Model"]');
  await rows(page, 'active').nth(1).waitFor();
  await first.filter({ hasText: 'm1' }).waitFor();
  await page.getByRole('radio', { name: 'Oldest first' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForURL(`${issuer}/flow?sort=slow`);
  await first.filter({ hasText: 'n1' }).waitFor();
  await page.keyboard.press('ArrowRight');
  await page.waitForURL(`${issuer}/flow?sort=user`);
  await page.reload();
  assert.ok(await page.getByRole('radio', { name: 'By user' }).isChecked());
  fast.leave();
  slow.leave();
});

test('a waterfall has the spans of the request, by its id', async (t) => {
  const page = await open(t, browser, '/flow');
  const { done } = await ask(t, 'pace=100, tokens=30');
  const { id } = await done;
  await page.fill('#id', id);
  await page.keyboard.press('Enter');
  await page.waitForURL(`${issuer}/flow/requests/${id}`);
  const call = page.locator('#waterfall details', { hasText: 'chat m1' });
  await call.waitFor();
  for (const name of ['POST /v1/chat/completions', 'auth', 'translate']) await page.locator('#waterfall .name', { hasText: name }).waitFor();
  await call.locator('summary').click();
  await page.waitForTimeout(1200); // it is drawn again meanwhile
  assert.match(await call.locator('.detail').textContent(), /gen_ai\.usage\.output_tokens: 30/);
  const bar = await call.locator('.bar-part').last().boundingBox();
  assert.ok(bar.width > 50, `the reply's bar is ${bar.width} wide`);
});

variant('the focus stays among the requests when its own has ended', async (t) => {
  const page = await open(t, browser, '/flow');
  const first = await ask(t, 'pace=20, tokens=100000');
  await rows(page, 'active').nth(0).waitFor();
  await ask(t, 'pace=20, tokens=100000');
  await rows(page, 'active').nth(1).waitFor();
  await rows(page, 'active').first().getByRole('button').focus();
  const gone = await rows(page, 'active').first().locator('a').getAttribute('title');
  first.leave();
  await page.locator(`#active a[title="${gone}"]`).waitFor({ state: 'detached' });
  assert.notEqual(await page.evaluate(() => document.activeElement.closest('#active')?.id), undefined);
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'A');
});

variant('an id that is not known says where else to look', async (t) => {
  const page = await open(t, browser, '/flow');
  const answer = await page.goto(`${issuer}/flow/requests/req_of_yesterday`);
  assert.equal(answer.status(), 404);
  await page.getByRole('heading', { name: 'This request is not known' }).waitFor();
});

variant('a provider is paused and resumed from its row, which follows without losing the focus', async (t) => {
  const page = await open(t, browser, '/flow/providers');
  const row = page.locator('.provs tr', { hasText: 'narrow' });
  await row.getByRole('button', { name: 'Pause' }).click();
  await row.locator('.dot.off').first().waitFor();
  await row.getByRole('button', { name: 'Resume' }).focus();
  const { done } = await ask(t, 'tokens=3', 'n1');
  await row.locator('td[data-label="Queued"]', { hasText: /^1$/ }).waitFor(); // the page has loaded itself again
  assert.equal(await page.evaluate(() => document.activeElement.ariaLabel), 'Resume narrow');
  await row.getByRole('link', { name: 'narrow', exact: true }).click();
  await page.locator('td[data-label="Waiting"]', { hasText: /^1$/ }).waitFor();
  await row.getByRole('button', { name: 'Resume' }).click();
  await row.locator('.word', { hasText: 'serving' }).waitFor();
  assert.match((await done).text, /\[DONE\]/);
  await row.getByRole('link', { name: /^[1-9]\d* requests to narrow$/ }).waitFor();
  await row.locator('td[data-label="First token"]', { hasText: /s/ }).waitFor();
  await row.locator('svg.hour path').waitFor();
});

for (const colorScheme of long ? themes : ['light']) {
  test(`a video job shows how much of it is made, and is ended: ${colorScheme}`, async (t) => {
    const page = await open(t, browser, '/flow', { colorScheme });
    const id = await film('a fox [sandbox: job=60s]');
    const row = rows(page, 'active').filter({ has: page.locator(`a[title="${id}"]`) });
    await row.locator('.tag.in_progress', { hasText: /^in progress$/ }).waitFor();
    await row.locator('.place', { hasText: /^ [1-9][0-9]? %$/ }).waitFor();
    await picture(page, `flow-job-${colorScheme}`);
    await row.getByRole('button').click();
    await row.getByRole('button').click();
    await rows(page, 'recent').filter({ has: page.locator(`a[title="${id}"]`) }).locator('.tag.failed', { hasText: '502' }).waitFor();
    await page.goto(`${issuer}/flow/requests/${id}`);
    await page.locator('#waterfall .bar-part.in_progress').waitFor();
    assert.equal(await page.locator('#nospans').isVisible(), false);
    await picture(page, `flow-job-request-${colorScheme}`);
  });
}

test('the page comes back after a lost connection', async (t) => {
  const page = await open(t, browser, '/flow', {}, (p) => p.addInitScript(() => {
    const real = WebSocket;
    globalThis.WebSocket = class extends real {
      constructor(...all) {
        super(...all);
        globalThis.opened = (globalThis.opened ?? 0) + 1;
        globalThis.current = this;
      }
    };
  }));
  await page.evaluate(() => globalThis.current.close());
  await page.locator('#line.lost').waitFor();
  await page.locator('#line.live').waitFor();
  assert.equal(await page.evaluate(() => globalThis.opened), 2);
});
