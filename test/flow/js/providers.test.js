// Administrators add, test, change and remove providers by clicking.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, variant } from '../../oauth/js/chromium.js';
import { issuer, key, signedIn } from '../../oauth/js/signedin.js';

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

// status asks a model and returns the status of the reply.
const status = async (model) => (await fetch(`${issuer}/v1/chat/completions`, {
  method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-sandbox': 'tokens=3' },
  body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
})).status;

test('a provider is added, tested, saved, asked, and the change is undone', async (t) => {
  const page = await signedIn(t, browser, '/flow/providers', { javaScriptEnabled: false });
  await page.getByRole('link', { name: 'Add provider' }).click();
  await page.getByRole('link', { name: 'chat', exact: true }).click();
  await page.getByLabel('Name').fill('elsewhere');
  await page.getByLabel('Address').fill(issuer);
  await page.getByLabel('Key', { exact: true }).fill(key);
  await page.getByRole('button', { name: 'Test and review' }).click();
  await page.getByText('has no version').waitFor();
  assert.ok(!(await page.content()).includes(key), 'the review has the key');
  await page.getByRole('button', { name: `Use ${issuer}/v1` }).click();
  await page.locator('.diff .added', { hasText: `${issuer}/v1` }).waitFor();
  await page.getByText('the key is good').waitFor();
  await page.getByRole('link', { name: 'Back' }).click();

  await page.getByRole('link', { name: 'Add provider' }).click();
  await page.getByRole('link', { name: 'sandbox', exact: true }).click();
  await page.getByLabel('Name').fill('second');
  await page.getByLabel('Models to serve there').fill('s1');
  await page.getByRole('button', { name: 'Test and review' }).click();
  await page.getByText('the embedded simulator').waitFor();
  await page.getByRole('button', { name: 'Save and put in force' }).click();
  await page.getByText('The change is saved and in force.').waitFor();
  assert.equal(await status('s1'), 200);
  await page.getByRole('button', { name: 'Test second' }).click();
  await page.locator('#tested .tag.good').waitFor();
  await page.getByRole('button', { name: 'Undo the last change' }).click();
  await page.getByText('The last change was undone.').waitFor();
  assert.equal(await status('s1'), 404);
});

variant('a limit of a provider is changed, and a provider in use is not removed', async (t) => {
  const page = await signedIn(t, browser, '/flow/providers', { javaScriptEnabled: false });
  await page.getByRole('link', { name: 'Change narrow' }).click();
  await page.getByLabel('limits.rpm').fill('601');
  await page.getByRole('button', { name: 'Review', exact: true }).click();
  await page.locator('.diff .added', { hasText: 'rpm: 601' }).waitFor();
  await page.getByRole('button', { name: 'Save and put in force' }).click();
  await page.getByRole('link', { name: 'Change narrow' }).click();
  assert.equal(await page.getByLabel('limits.rpm').inputValue(), '601');
  await page.getByRole('button', { name: 'Remove this provider' }).click();
  await page.getByText('is no provider of this file').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Save and put in force' }).count(), 0);
  await page.goto(`${issuer}/flow/providers`);
  await page.getByRole('button', { name: 'Undo the last change' }).click();
  await page.getByText('The last change was undone.').waitFor();
});
