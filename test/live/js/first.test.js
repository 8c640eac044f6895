// The page at / of a gateway that has just been started: a person copies the key, asks something and finds the settings
// of their client. It is another gateway than that of the other files (STAGEDOOR_FIRST_URL).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, pictures, variant, visit } from '../../oauth/js/chromium.js';

const address = process.env.STAGEDOOR_FIRST_URL;

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const ask = (page) => page.getByRole('button', { name: 'Ask', exact: true });

test('the first page copies the key, streams an answer and fills in the settings', async (t) => {
  const page = await visit(t, browser, { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.goto(address);
  const key = await page.textContent('#key');
  assert.match(key, /^sd-\w{43}$/);
  await page.locator('.ticket div', { hasText: 'Key' }).getByRole('button').click();
  await page.locator('.copy.done', { hasText: 'Copied' }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);

  await page.fill('#question', 'is anyone <b>there</b>?');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#measure:not([hidden])');
  assert.match(await page.textContent('#answer'), /is anyone <b>there<\/b>\?/);
  await page.locator('#measure', { hasText: 'no charge' }).waitFor(); // the receipt is read after the answer
  assert.match(await page.textContent('#measure'), /\d m?s first token.*[1-9]\d* tokens per second.*\d+ → [1-9]\d* tokens/s);

  await page.getByText('Claude Code', { exact: true }).click();
  const shown = await page.locator('.panel:visible').innerText();
  assert.ok(shown.includes(`ANTHROPIC_BASE_URL=${address}\n`) && shown.includes(key), shown);
  await page.keyboard.press('ArrowRight');
  assert.match(await page.locator('.panel:visible').innerText(), /codex/);
});

test('without JavaScript the answer comes with the page', async (t) => {
  const page = await visit(t, browser, { javaScriptEnabled: false });
  await page.goto(address);
  assert.equal(await page.locator('.copy:visible').count(), 0);
  await page.fill('#question', 'still there?');
  await ask(page).click();
  await page.locator('#answer', { hasText: 'still there?' }).waitFor();
});

variant('a refusal stands in place of the answer', async (t) => {
  const page = await visit(t, browser);
  await page.goto(address);
  await page.route('**/v1/chat/completions', (route) => route.fulfill({ status: 429, json: { error: { message: 'too many requests' } } }));
  await ask(page).click();
  await page.locator('#ask-problem', { hasText: 'too many requests' }).waitFor();
  assert.ok(await ask(page).isEnabled());
});

variant('the first page fits both screens', async (t) => {
  const page = await visit(t, browser);
  await page.goto(address);
  await page.getByText('Codex', { exact: true }).click();
  await pictures(page, 'first');
});
