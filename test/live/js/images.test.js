// A user makes pictures by clicking, paints a mask over one, and finds all of them again: the page, the gateway and the
// sandbox behind it, nothing invented. The tests tell one story and run in order.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { launch, pictures, variant } from '../../oauth/js/chromium.js';
import { button, issuer } from './gateway.js';
import { signedIn } from '../../oauth/js/signedin.js';

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const open = (t, options) => signedIn(t, browser, '/images', options);
const made = (page, n) => page.waitForFunction((n) => [...document.querySelectorAll('#pictures .job')].filter((c) => !c.querySelector('[data-do=save]').hidden && c.querySelector('img').naturalWidth && /\$/.test(c.querySelector('.facts').textContent)).length === n, n);
// A picture that is made is on the page before it is kept. Only kept ones are there when the page is opened again.
const kept = async (page) => {
  await page.waitForFunction(() => [...document.querySelectorAll('#pictures .job')].every((c) => c.card.id));
  await page.evaluate(() => Promise.all([...document.querySelectorAll('#pictures .job')].map((c) => c.card.keeping)));
};
const card = (page, prompt) => page.locator('#pictures .job', { hasText: prompt });
const label = (page, selector, text) => page.waitForFunction(([selector, text]) => document.querySelector(selector).textContent === text, [selector, text]);

test('the price stands on the button before the click, and is what is charged', async (t) => {
  const page = await open(t);
  await page.locator('#none').waitFor();
  await label(page, '#go', 'Generate for $0.04');
  await page.selectOption('#size', '256x256');
  await page.locator('#refused', { hasText: 'must be one of' }).waitFor(); // before anything is made
  await page.selectOption('#size', '1536x1024');
  await page.fill('#count', '2');
  await page.fill('#prompt', 'a paper boat <b>at dusk</b>');
  await label(page, '#go', 'Generate 2 for $0.08');
  await page.keyboard.press('Control+Enter');
  await made(page, 2);
  assert.deepEqual(await page.locator('.facts').allTextContents(), Array(2).fill('gen-image-1 · 1536 × 1024 · medium · $0.04'));
  assert.equal(await page.locator('.job .prompt').first().textContent(), 'a paper boat <b>at dusk</b>');
  await kept(page);
  await pictures(page, 'images');
});

test('pictures are found again, made again, varied and deleted', async (t) => {
  const page = await open(t, { acceptDownloads: true });
  await made(page, 2);
  const boat = card(page, 'a paper boat').first();
  await button(boat, /^Regenerate for \$0\.04/).click();
  await made(page, 3);
  await button(boat, /^Variations/).click();
  await page.selectOption('#vary-quality', 'high');
  await page.fill('#vary-count', '1');
  await label(page, '#vary [type=submit]', 'Generate for $0.04');
  await page.locator('#vary [type=submit]').click();
  await made(page, 4);
  assert.match(await page.locator('.facts').first().textContent(), /1536 × 1024 · high/);
  await page.locator('#pictures .job').last().scrollIntoViewIfNeeded();
  const [download] = await Promise.all([page.waitForEvent('download'), button(page.locator('#pictures .job').last(), /^Save/).click()]);
  assert.equal((await readFile(await download.path())).readUInt32BE(16), 1536); // the width of a PNG, in its full size
  await button(page.locator('#pictures .job').first(), /^Delete/).click();
  await button(page.locator('#remove'), 'Delete for good').click();
  await made(page, 3);
  await kept(page);
  await page.reload();
  await made(page, 3);
});

test('a mask that is painted by hand is sent with the picture', async (t) => {
  const page = await open(t);
  await made(page, 3);
  await button(page.locator('#pictures .job').first(), /^Edit/).click();
  await label(page, '#edit [type=submit]', 'Edit for $0.04');
  await page.evaluate(() => { // the protocol of the browser does not show the files of a form
    const { fetch } = window;
    window.quoted = [''];
    window.fetch = (url, options) => {
      if (options?.body instanceof FormData && !options.headers['x-dry-run']) window.sent = options.body;
      else if (options?.body instanceof FormData) window.quoted.push(options.body.get('mask') ? 'mask' : '');
      return fetch(url, options);
    };
  });
  const canvas = page.locator('#mask');
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width / 4, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 3 / 4, box.y + box.height / 2, { steps: 5 });
  await page.mouse.up();
  await canvas.focus();
  for (const key of ['ArrowDown', 'ArrowDown', ' ']) await page.keyboard.press(key);
  await label(page, '#edit [type=submit]', 'Edit for $0.04'); // of the paint, before there is a prompt
  assert.deepEqual(await page.evaluate(() => window.quoted), ['', 'mask']);
  await page.locator('#brush').press('ArrowRight');
  await page.fill('#edit-prompt', 'a lighthouse there');
  await page.locator('#brush').focus();
  await page.waitForFunction(() => window.quoted.length === 3); // the width of the brush has no price
  await label(page, '#edit [type=submit]', 'Edit for $0.04');
  await pictures(page, 'images-edit');
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
  await kept(page);
  await page.goto(`${issuer}/images?model=gen-image-1`);
  await made(page, 4);
  assert.equal(await button(card(page, 'a lighthouse there'), /^Regenerate/).count(), 0); // its source is not kept
});

variant('what is refused is said on the card', async (t) => {
  const page = await open(t);
  await page.fill('#prompt', 'a bad one [sandbox: block]');
  await page.locator('#go').click();
  await card(page, 'a bad one').locator('.problem', { hasText: 'moderation' }).waitFor();
  await button(card(page, 'a bad one'), /^Delete/).click();
  await button(page.locator('#remove'), 'Delete for good').click();
  await card(page, 'a bad one').waitFor({ state: 'detached' });
});

variant('a reply that is lost is fetched again with its key, and once more on request', async (t) => {
  const page = await open(t);
  const keys = [];
  let drop = 1;
  await page.route('**/images/api/images/generations', async (route) => {
    const headers = route.request().headers();
    if (headers['x-dry-run']) return route.continue();
    keys.push(headers['idempotency-key']);
    if (drop-- <= 0) return route.continue();
    await route.fetch(); // it is made
    return route.abort();
  });
  await page.fill('#prompt', 'a lost parcel');
  await page.locator('#go').dblclick(); // which makes one
  const lost = card(page, 'a lost parcel');
  await lost.locator('.facts', { hasText: '$0.04' }).waitFor();
  assert.equal(await lost.count(), 1);
  assert.equal(keys.length, 2);
  assert.equal(keys[0], keys[1]);

  drop = 2; // so is the repeat
  await page.fill('#prompt', 'a late parcel');
  await page.locator('#go').click();
  const late = card(page, 'a late parcel');
  await late.locator('.problem', { hasText: 'The reply was lost' }).waitFor();
  await button(late, /^Fetch/).click();
  await late.locator('.facts', { hasText: '$0.04' }).waitFor();
  assert.equal(new Set(keys).size, 2);
  assert.equal(keys.length, 5);
});

variant('a picture that is deleted while it is being stored is not in the gallery, and no receipt is no price', async (t) => {
  const page = await open(t);
  let go;
  const stored = new Promise((resolve) => { go = resolve; });
  await page.route('**/images/api/receipts/*', (route) => route.abort());
  await page.route('**/images/api/conversations', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    await stored;
    return route.continue();
  });
  await page.fill('#prompt', 'a secret');
  await page.locator('#go').click();
  await button(card(page, 'a secret'), /^Delete/).click();
  assert.doesNotMatch(await card(page, 'a secret').locator('.facts').textContent(), /charge/);
  await button(page.locator('#remove'), 'Delete for good').click();
  go();
  await card(page, 'a secret').waitFor({ state: 'detached' });
  await page.reload();
  await card(page, 'a lost parcel').waitFor();
  assert.equal(await card(page, 'a secret').count(), 0);
});

variant('a price is not rounded, and a key that is held asks once', async (t) => {
  const page = await open(t);
  let asked = 0;
  await page.route('**/images/api/images/generations', (route) => {
    if (route.request().headers()['x-dry-run']) return route.fulfill({ json: { estimated_hold: 42_000 } });
    asked++;
    return route.fulfill({ status: 400, json: { error: { message: 'not now' } } });
  });
  await page.fill('#prompt', 'a held key');
  await label(page, '#go', 'Generate for $0.042');
  await page.focus('#prompt');
  await page.keyboard.down('Control');
  for (let i = 0; i < 3; i++) await page.keyboard.down('Enter'); // the second and the third repeat the first
  await card(page, 'a held key').locator('.problem', { hasText: 'not now' }).waitFor();
  assert.equal(asked, 1);
});
