// The log of requests in a browser: search, filters, pages, exports, one request; without script, too.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, variant } from '../../oauth/js/chromium.js';
import { signedIn } from '../../oauth/js/signedin.js';
import { ask, issuer } from './gateway.js';

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const rows = (page) => page.locator('.reqs tbody tr');

// logged opens the log when it has the request with an id.
async function logged(t, id, options = {}) {
  const page = await signedIn(t, browser, `/requests?q=${id}`, options);
  for (let n = 0; n < 40 && await rows(page).count() === 0; n++) { await page.waitForTimeout(250); await page.reload(); }
  return page;
}

test('a request is found by id, opened and exported, without script', async (t) => {
  const { id } = await (await ask(t, 'pace=5, tokens=40')).done;
  await (await ask(t, 'error=overloaded', 'n1')).done;
  const page = await logged(t, id, { javaScriptEnabled: false });
  assert.equal(await rows(page).count(), 1);
  await page.getByRole('searchbox').fill('model:m1 out:>=40 is:nonsense');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('is: must be one of').waitFor();
  await page.getByRole('searchbox').fill(`${id} model:m1 out:>=40 took:<60`);
  await page.getByRole('button', { name: 'Search' }).click();
  const file = page.waitForEvent('download');
  await page.getByRole('link', { name: 'JSON lines' }).click();
  const line = JSON.parse(await (await (await file).createReadStream()).toArray().then((parts) => Buffer.concat(parts).toString()));
  assert.equal(line.id, id);
  assert.equal(line.output_tokens, 40);
  assert.equal(line.key_name, 'fixed');
  await rows(page).first().getByRole('link').click();
  await page.getByRole('heading', { name: 'm1 for fixed' }).waitFor();
  for (const text of ['Attempt 1, sandbox', 'wait for the first token', 'Nothing was charged']) await page.getByText(text).waitFor();
});

test('the search of all pages finds a request by the keyboard, and J and K move in the list', async (t) => {
  const { id } = await (await ask(t, 'pace=5, tokens=4')).done;
  const page = await logged(t, id);
  await page.goto(`${issuer}/account`);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Go to' }).fill(id.slice(0, 20));
  await page.locator('.goto .hits .name', { hasText: id }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/requests\/\d+$/);
  await page.goto(`${issuer}/requests`);
  await page.keyboard.press('j');
  assert.equal(await page.evaluate(() => document.activeElement.closest('tr').rowIndex), 1);
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/requests\/\d+$/);
});

variant('a range of time is chosen by dragging over the strip, or in its fields', async (t) => {
  const { id } = await (await ask(t, 'pace=5, tokens=4')).done;
  const page = await logged(t, id);
  const asked = () => { const a = new URL(page.url()).searchParams; return { q: a.get('q'), minutes: (a.get('to') - a.get('from')) / 60 }; };
  const box = await page.locator('svg[data-from]').boundingBox();
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width / 2, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width + 20, y, { steps: 4 }); // beyond its end
  await page.locator('.picked').waitFor();
  await page.mouse.up();
  await page.waitForURL(/from=/);
  const chosen = asked();
  assert.equal(chosen.q, id);
  assert.ok(chosen.minutes >= 30 && chosen.minutes <= 32, `${chosen.minutes} minutes of an hour are chosen`);
  await rows(page).first().waitFor();
  await page.getByLabel('From (UTC)').fill('2020-01-01T10:00');
  await page.getByLabel('To (UTC)').fill('2020-01-01T11:00');
  await page.getByLabel('To (UTC)').press('Enter');
  await page.getByText('No requests found').waitFor();
  assert.equal(await page.getByLabel('From (UTC)').inputValue(), '2020-01-01T10:00');
});
