// The whole flow by clicking, in headless Chromium. STAGEDOOR_CHROMIUM names the program;
// STAGEDOOR_SCREENSHOTS a directory to put pictures of the pages into.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { clientId, clientSecret, issuer, password, redirectUri, username } from './gateway.js';

const pictures = process.env.STAGEDOOR_SCREENSHOTS;
let browser;
let app;

before(async () => {
  // The app: its callback sends the browser on to its own front page.
  app = createServer((req, res) => {
    if (req.url.startsWith('/cb')) res.writeHead(302, { location: `http://localhost:${app.address().port}/home?${req.url.split('?')[1]}` }).end();
    else res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>home</h1>');
  });
  await new Promise((resolve) => app.listen(new URL(redirectUri).port, resolve));
  browser = await chromium.launch({
    executablePath: process.env.STAGEDOOR_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
});

after(async () => {
  await browser?.close();
  await new Promise((resolve) => app.close(resolve));
});

function authorizeURL(extra = {}) {
  return `${issuer}/api/oauth2/authorize?${new URLSearchParams({
    client_id: clientId, redirect_uri: redirectUri, response_type: 'code', scope: 'profile balance', state: 'xyz', ...extra,
  })}`;
}

// visit opens a page in a fresh browser and fails on anything it complains about.
async function visit(t, options = {}) {
  const context = await browser.newContext(options);
  t.after(() => context.close());
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (m) => { if (/Content Security Policy|Refused/.test(m.text())) complaints.push(m.text()); });
  page.on('pageerror', (e) => complaints.push(String(e)));
  t.after(() => assert.deepEqual(complaints, []));
  return page;
}

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

for (const colorScheme of ['light', 'dark']) {
  for (const [size, viewport] of Object.entries({ desktop: { width: 1200, height: 800 }, phone: { width: 360, height: 720 } })) {
    test(`sign in, allow, top up: ${colorScheme}, ${size}`, async (t) => {
      const page = await visit(t, { colorScheme, viewport });
      const picture = async (name) => {
        const { scroll, width } = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth, width: innerWidth }));
        assert.ok(scroll <= width, `${name} is wider than the screen: ${scroll} > ${width}`);
        if (pictures) await page.screenshot({ path: `${pictures}/${name}-${colorScheme}-${size}.png`, fullPage: true });
      };
      await page.goto(authorizeURL());
      await picture('sign-in');
      await page.fill('#username', username);
      await page.fill('#password', 'wrong');
      await page.keyboard.press('Enter');
      await page.waitForSelector('[role=alert]');
      await picture('sign-in-wrong');
      await page.fill('#password', password);
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await page.waitForSelector('text="Allow access?"');
      await picture('consent');
      await page.getByRole('button', { name: 'Allow', exact: true }).click();
      const access = await token(page);

      const { topup_url: link } = await (await fetch(`${issuer}/api/oauth2/topup`, { headers: { authorization: `Bearer ${access}` } })).json();
      await page.goto(link);
      await page.waitForSelector('#code');
      await page.fill('#code', 'AAAA-BBBB');
      await page.getByRole('button', { name: 'Redeem', exact: true }).click();
      await page.waitForSelector('[role=alert]');
      await picture('top-up');
      await page.goto(link);
      await picture('expired');

      await page.goto(authorizeURL({ redirect_uri: 'https://evil.example/<b>' }));
      await picture('failure');
      const fresh = await visit(t, { colorScheme, viewport });
      await fresh.goto(authorizeURL({ auto_authorize: 'true' }));
      if (pictures) await fresh.screenshot({ path: `${pictures}/sign-in-auto-${colorScheme}-${size}.png`, fullPage: true });
    });
  }
}

test('by keyboard alone', async (t) => {
  const page = await visit(t);
  await page.goto(authorizeURL());
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
  await page.goto(`http://localhost:${app.address().port}/home`);
  await page.setContent(`<iframe src="${authorizeURL()}"></iframe>`);
  await page.waitForTimeout(500);
  const frame = page.frames()[1];
  assert.ok(!frame || !(await frame.$('#password').catch(() => null)));
});
