// A user makes pictures by clicking, paints a mask over one, and finds all of them again: the page, the gateway and the
// sandbox behind it, nothing invented. The tests tell one story and run in order.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { launch, pictures } from '../../oauth/js/chromium.js';
import { button, issuer } from './gateway.js';
import { signedIn } from '../../oauth/js/signedin.js';

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const open = (t, options) => signedIn(t, browser, '/images', options);
const made = (page, n) => page.waitForFunction((n) => [...document.querySelectorAll('#pictures .job')].filter((c) => !c.querySelector('[data-do=save]').hidden && c.querySelector('img').naturalWidth && /\$/.test(c.querySelector('.facts').textContent)).length === n, n);
const card = (page, prompt) => page.locator('#pictures .job', { hasText: prompt });
const label = (page, selector, text) => page.waitForFunction(([selector, text]) => document.querySelector(selector).textContent === text, [selector, text]);

test('the price stands on the button before the click, and is what is charged', async (t) => {
  const page = await open(t);
  await page.locator('#none').waitFor();
  await label(page, '#go', 'Make the picture · $0.04');
  await page.selectOption('#size', '256x256');
  await page.locator('#refused', { hasText: 'must be one of' }).waitFor(); // before anything is made
  await page.selectOption('#size', '1536x1024');
  await page.fill('#count', '2');
  await page.fill('#prompt', 'a paper boat <b>at dusk</b>');
  await label(page, '#go', 'Make 2 pictures · $0.08');
  await page.keyboard.press('Control+Enter');
  await made(page, 2);
  assert.deepEqual(await page.locator('.facts').allTextContents(), Array(2).fill('gen-image-1 · 1536 × 1024 · $0.04'));
  assert.equal(await page.locator('.job .prompt').first().textContent(), 'a paper boat <b>at dusk</b>');
  await page.waitForFunction(() => [...document.querySelectorAll('#pictures .job')].every((c) => c.card.id)); // they are kept
  await pictures(page, 'images');
});

test('pictures are found again, made again, varied and deleted', async (t) => {
  const page = await open(t, { acceptDownloads: true });
  await made(page, 2);
  const boat = card(page, 'a paper boat').first();
  await button(boat, /^Regenerate · \$0\.04/).click();
  await made(page, 3);
  await button(boat, /^Variations/).click();
  await page.selectOption('#vary-quality', 'high');
  await page.fill('#vary-count', '1');
  await label(page, '#vary [type=submit]', 'Make the picture · $0.04');
  await page.locator('#vary [type=submit]').click();
  await made(page, 4);
  assert.match(await page.locator('.facts').first().textContent(), /1536 × 1024 · high/);
  await page.locator('#pictures .job').last().scrollIntoViewIfNeeded();
  const [download] = await Promise.all([page.waitForEvent('download'), button(page.locator('#pictures .job').last(), /^Save/).click()]);
  assert.equal((await readFile(await download.path())).readUInt32BE(16), 1536); // the width of a PNG, in its full size
  await button(page.locator('#pictures .job').first(), /^Delete/).click();
  await button(page.locator('#remove'), 'Delete for good').click();
  await made(page, 3);
  await page.reload();
  await made(page, 3);
});

test('a mask that is painted by hand is sent with the picture', async (t) => {
  const page = await open(t);
  await made(page, 3);
  await button(page.locator('#pictures .job').first(), /^Edit/).click();
  const canvas = page.locator('#mask');
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width / 4, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 3 / 4, box.y + box.height / 2, { steps: 5 });
  await page.mouse.up();
  await canvas.focus();
  for (const key of ['ArrowDown', 'ArrowDown', ' ']) await page.keyboard.press(key);
  await page.fill('#edit-prompt', 'a lighthouse there');
  await label(page, '#edit [type=submit]', 'Edit · $0.04');
  await pictures(page, 'images-edit');
  await page.evaluate(() => { // the protocol of the browser does not show the files of a form
    const { fetch } = window;
    window.fetch = (url, options) => {
      if (options?.body instanceof FormData && !options.headers['x-dry-run']) window.sent = options.body;
      return fetch(url, options);
    };
  });
  await page.locator('#edit [type=submit]').click();
  await page.waitForFunction(() => window.sent);
  const alpha = await page.evaluate(async () => {
    const bitmap = await createImageBitmap(sent.get('mask'));
    const context = Object.assign(document.createElement('canvas'), { width: bitmap.width, height: bitmap.height }).getContext('2d');
    context.drawImage(bitmap, 0, 0);
    const at = (x, y) => context.getImageData(bitmap.width * x, bitmap.height * y, 1, 1).data[3];
    return { prompt: sent.get('prompt'), type: sent.get('mask').type, width: bitmap.width, painted: at(0.5, 0.5), byKey: at(0.75, 0.58), free: at(0.5, 0.1) };
  });
  assert.deepEqual(alpha, { prompt: 'a lighthouse there', type: 'image/png', width: 1536, painted: 0, byKey: 0, free: 255 });
  await made(page, 4);
  assert.match(await card(page, 'a lighthouse there').locator('.facts').textContent(), /^gen-image-1, edited · .*\$0\.04$/);
  await page.goto(`${issuer}/images?model=gen-image-1`);
  await made(page, 4);
  assert.equal(await button(card(page, 'a lighthouse there'), /^Regenerate/).count(), 0); // its source is not kept
});

test('what is refused is said on the card', async (t) => {
  const page = await open(t);
  await page.fill('#prompt', 'a bad one [sandbox: block]');
  await page.locator('#go').click();
  await card(page, 'a bad one').locator('.problem', { hasText: 'moderation' }).waitFor();
  await button(card(page, 'a bad one'), /^Delete/).click();
  await button(page.locator('#remove'), 'Delete for good').click();
  await card(page, 'a bad one').waitFor({ state: 'detached' });
});
