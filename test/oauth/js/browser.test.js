// An app's users, by clicking.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { home, serveApp } from './app.js';
import { focused as hasFocus, launch, pictures, screens, variant, visit as open } from './chromium.js';
import { clientId, clientSecret, issuer, password, redirectUri, username } from './gateway.js';

let browser;

before(async () => {
  await serveApp();
  browser = await launch();
});

after(() => browser?.close());

function authorizeURL(extra = {}) {
  return `${issuer}/api/oauth2/authorize?${new URLSearchParams({
    client_id: clientId, redirect_uri: redirectUri, response_type: 'code', scope: 'profile balance', state: 'xyz', ...extra,
  })}`;
}

const visit = (t, options) => open(t, browser, options);

async function signIn(page) {
  await page.fill('#username', username);
  await page.fill('#password', password);
  await page.keyboard.press('Enter');
}

async function token(page) {
  await page.waitForURL(/\/home\?/);
  const params = new URL(page.url()).searchParams;
  assert.equal(params.get('state'), 'xyz');
  assert.equal(params.get('iss'), issuer);
  const response = await fetch(`${issuer}/api/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'authorization_code', code: params.get('code'), redirect_uri: redirectUri, client_id: clientId, client_secret: clientSecret }),
  });
  assert.equal(response.status, 200);
  return (await response.json()).access_token;
}

test('sign in, allow, top up: every page fits both screens', async (t) => {
  const page = await visit(t, { viewport: screens.desktop });
  const shot = (name) => pictures(page, name);
  await page.goto(authorizeURL());
  await shot('sign-in');
  await page.fill('#username', username);
  await page.fill('#password', 'wrong');
  await page.keyboard.press('Enter');
  await page.waitForSelector('[role=alert]');
  await shot('sign-in-wrong');
  await page.fill('#password', password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForSelector('text="Allow access?"');
  await shot('consent');
  await page.getByRole('button', { name: 'Allow', exact: true }).click();
  const access = await token(page);

  const { topup_url: link } = await (await fetch(`${issuer}/api/oauth2/topup`, { headers: { authorization: `Bearer ${access}` } })).json();
  await page.goto(link);
  await page.waitForSelector('#code');
  await page.fill('#code', 'AAAA-BBBB');
  await page.getByRole('button', { name: 'Redeem', exact: true }).click();
  await page.waitForSelector('[role=alert]');
  await shot('top-up');
  await page.goto(link);
  await shot('expired');

  await page.goto(authorizeURL({ redirect_uri: 'https://evil.example/<b>' }));
  await shot('failure');
  const fresh = await visit(t, { viewport: screens.desktop });
  await fresh.goto(authorizeURL({ auto_authorize: 'true' }));
  await pictures(fresh, 'sign-in-auto');
});

variant('by keyboard alone', async (t) => {
  const page = await visit(t);
  await page.goto(authorizeURL());
  await hasFocus(page, 'username');
  await page.keyboard.type(username);
  await page.keyboard.press('Tab');
  await page.keyboard.type(password);
  await page.keyboard.press('Enter');
  await page.waitForSelector('text="Allow access?"');
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  for (let i = 0; i < 10 && (await focused()) !== 'Allow'; i++) await page.keyboard.press('Tab');
  assert.equal(await focused(), 'Allow');
  await page.keyboard.press('Enter');
  await token(page);
});

test('signing in is the consent, and the next time nothing is asked', async (t) => {
  const page = await visit(t);
  await page.goto(authorizeURL({ auto_authorize: 'true' }));
  await signIn(page);
  await token(page);
  await page.goto(authorizeURL({ auto_authorize: 'true' }));
  await token(page);
});

test('denying, and another account', async (t) => {
  const page = await visit(t);
  await page.goto(authorizeURL());
  await signIn(page);
  await page.getByRole('button', { name: 'Use another account', exact: true }).click();
  await signIn(page);
  await page.getByRole('button', { name: 'Deny', exact: true }).click();
  await page.waitForURL(/\/home\?.*error=access_denied/);
});

test('pages cannot be framed', async (t) => {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(home);
  await page.setContent(`<iframe src="${authorizeURL()}"></iframe>`);
  await page.waitForTimeout(500);
  const frame = page.frames()[1];
  assert.ok(!frame || !(await frame.$('#password').catch(() => null)));
});
