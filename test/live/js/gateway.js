// The gateway under test, started by ../run.sh, and a browser that is signed in there.
import assert from 'node:assert/strict';
import { visit } from '../../oauth/js/chromium.js';

function need(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set; start the suite with ../run.sh`);
  return value;
}

export const issuer = need('STAGEDOOR_URL').replace(/\/$/, '');
export const username = need('STAGEDOOR_USERNAME');
export const password = need('STAGEDOOR_PASSWORD');
export const key = need('STAGEDOOR_KEY');

let state;

// signedIn opens a page of somebody who is signed in. before prepares it.
export async function signedIn(t, browser, options = {}, before = async () => {}) {
  state ??= await signIn(browser);
  const page = await visit(t, browser, { storageState: state, ...options });
  await before(page);
  await page.goto(`${issuer}/live`);
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

export const button = (at, name) => at.getByRole('button', { name });
export const line = (page, text) => page.waitForFunction((text) => document.getElementById('line').textContent.startsWith(text), text);
export const cards = (page, n) => page.waitForFunction((n) => document.querySelectorAll('.job:not([hidden])').length === n, n);
