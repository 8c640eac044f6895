// Pages of a signed-in user at a gateway that ../../gateway.sh has started,
// for the suites of other folders.
import assert from 'node:assert/strict';
import { visit } from './chromium.js';

function need(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set; start the suite with its run.sh`);
  return value;
}

export const issuer = need('STAGEDOOR_URL').replace(/\/$/, '');
export const username = need('STAGEDOOR_USERNAME');
export const password = need('STAGEDOOR_PASSWORD');
export const key = need('STAGEDOOR_KEY');

let state;

// signedIn opens a page of the signed-in user. before prepares it.
export async function signedIn(t, browser, path, options = {}, before = async () => {}) {
  state ??= await signIn(browser);
  const page = await visit(t, browser, { storageState: state, ...options });
  await before(page);
  await page.goto(issuer + path);
  return page;
}

async function signIn(browser) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${issuer}/signin`);
  await page.fill('#username', username);
  await page.fill('#password', password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL(`${issuer}/account`);
  const cookies = await context.storageState();
  await context.close();
  return cookies;
}
