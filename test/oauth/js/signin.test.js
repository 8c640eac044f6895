// Signing in without a password, by clicking: at an OpenID provider, which this file plays, and with a passkey of a
// virtual device. The gateway is one of its own, because browsers have passkeys for localhost and not for 127.0.0.1.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash, createHmac, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, pictures, screens, variant, visit } from './chromium.js';

const password = 'correct horse battery';
const folder = mkdtempSync(join(tmpdir(), 'stagedoor-signin-'));
let browser;
let provider;
let app;
let clientId;
let gateway;
let origin;

const listening = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));

// openProvider plays an OpenID provider whose only person is signed in there already.
async function openProvider() {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const codes = new Map();
  const part = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
  provider = createServer((req, res) => {
    const url = new URL(req.url, issuer);
    const reply = (body) => res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (url.pathname === '/authorize') {
      const code = randomUUID();
      codes.set(code, url.searchParams);
      const query = new URLSearchParams({ code, state: url.searchParams.get('state'), iss: issuer });
      res.writeHead(302, { location: `${url.searchParams.get('redirect_uri')}?${query}` }).end();
    } else if (url.pathname === '/token') {
      let body = '';
      req.on('data', (d) => { body += d; }).on('end', () => {
        const form = new URLSearchParams(body);
        const asked = codes.get(form.get('code'));
        codes.delete(form.get('code'));
        const challenge = createHash('sha256').update(form.get('code_verifier')).digest('base64url');
        if (asked?.get('code_challenge') !== challenge) return res.writeHead(400).end();
        const now = Math.floor(Date.now() / 1000);
        const text = `${part({ alg: 'RS256', kid: 'k' })}.${part({ iss: issuer, aud: 'stagedoor', sub: '1', nonce: asked.get('nonce'), iat: now, exp: now + 60, preferred_username: 'dora', groups: ['engineers'] })}`;
        reply({ access_token: 'a', token_type: 'Bearer', id_token: `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}` });
      });
    } else if (url.pathname === '/keys') {
      reply({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256', use: 'sig' }] });
    } else {
      reply({ issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/keys` });
    }
  });
  const issuer = `http://127.0.0.1:${await listening(provider)}`;
  return issuer;
}

before(async () => {
  const issuer = await openProvider();
  const free = createServer();
  const port = await listening(free);
  await new Promise((resolve) => free.close(resolve));
  origin = `http://localhost:${port}`;
  const config = join(folder, 'stagedoor.yaml');
  writeFileSync(config, `oauth: {issuer: "${origin}"}
keys: [{key: for-tests-only, name: fixed}]
providers: {sandbox: {shape: sandbox}}
models: {small: {targets: [{provider: sandbox, model: small}]}}
sign_in: {providers: {corp: {issuer: "${issuer}", client_id: stagedoor, client_secret: s, label: Example Corp, create: true, groups: {engineers: Crew}}}}
`);
  const binary = process.env.STAGEDOOR_BINARY;
  const data = join(folder, 'data');
  gateway = spawn(binary, ['serve', '--config', config, '--listen', `127.0.0.1:${port}`, '--data', data], { stdio: 'ignore' });
  while (!(await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))?.ok) await new Promise((resolve) => setTimeout(resolve, 50));
  execFileSync(binary, ['groups', 'create', 'Crew', '--budget', '5', '--budget-window', 'month', '--data', data]);
  execFileSync(binary, ['users', 'create', 'anna', '--password-stdin', '--data', data], { input: `${password}\n` });
  app = createServer((req, res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>home</h1>'));
  const callback = `http://127.0.0.1:${await listening(app)}/cb`;
  clientId = JSON.parse(execFileSync(binary, ['apps', 'create', 'Weather', '--owner', 'anna', '--redirect-uri', callback, '--json', '--data', data])).client_id;
  browser = await launch();
});

after(async () => {
  await browser?.close();
  gateway?.kill();
  provider?.close();
  app?.close();
  rmSync(folder, { recursive: true, force: true });
});

const button = (page, name) => page.getByRole('button', { name, exact: true });

test('a person signs in at a provider, with and without JavaScript, and is in the group that belongs to one there', async (t) => {
  for (const javaScriptEnabled of [true, false]) {
    const page = await visit(t, browser, { viewport: screens.desktop, javaScriptEnabled });
    await page.goto(`${origin}/signin?next=/account/security`);
    if (javaScriptEnabled) await pictures(page, 'signin-providers');
    else assert.equal(await button(page, 'Sign in with a passkey').isVisible(), false);
    await button(page, 'Sign in with Example Corp').click();
    await page.waitForURL(`${origin}/account/security`);
    assert.match(await page.textContent('table'), /Example Corp/);
    if (javaScriptEnabled) await pictures(page, 'security-without-password');
    await page.goto(`${origin}/account`);
    assert.match(await page.textContent('main'), /Budget of your group.*\$5\.00 a month/s);
  }
});

test('a passkey is added, signs in and is removed', async (t) => {
  const page = await visit(t, browser, { viewport: screens.desktop });
  const device = await page.context().newCDPSession(page);
  await device.send('WebAuthn.enable');
  await device.send('WebAuthn.addVirtualAuthenticator', { options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true } });
  await page.goto(`${origin}/signin?next=/account/security`);
  await page.fill('#username', 'anna');
  await page.fill('#password', password);
  await button(page, 'Sign in').click();
  await page.waitForURL(`${origin}/account/security`);
  await page.getByText('Add a passkey', { exact: true }).first().click();
  await page.fill('#passkey-name', 'laptop');
  await page.fill('#passkey-password', password);
  await pictures(page, 'security-passkey');
  await button(page, 'Add a passkey').click();
  await page.waitForURL(/done=passkey_added/);
  assert.match(await page.textContent('table'), /Passkey: laptop/);
  await button(page, 'Sign out').first().click();
  await page.waitForURL(/\/signin/);
  await button(page, 'Sign in with a passkey').click();
  await page.waitForURL(`${origin}/account`);
  await page.goto(`${origin}/account/security`);
  await page.locator('summary[aria-label="Remove Passkey: laptop"]').click();
  await page.locator('details[open] input[name=password]').fill(password);
  await button(page, 'Remove Passkey: laptop').click();
  await page.waitForURL(/done=identity_unlinked/);
});

// totp returns the code of an authenticator app with a key in base32.
function totp(key) {
  const bits = [...key.replace(/\s/g, '')].map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0')).join('');
  const bytes = Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const mac = createHmac('sha1', bytes).update(step).digest();
  return String((mac.readUInt32BE(mac[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

variant('a code after the sign-in at a provider leads back to the app', async (t) => {
  const page = await visit(t, browser, { viewport: screens.desktop });
  const callback = `http://127.0.0.1:${app.address().port}/cb`;
  const authorize = (extra) => `${origin}/api/oauth2/authorize?${new URLSearchParams({ client_id: clientId, redirect_uri: callback, response_type: 'code', scope: 'profile', state: 'xyz', ...extra })}`;
  await page.goto(authorize());
  await button(page, 'Sign in with Example Corp').click();
  await button(page, 'Allow').click();
  await page.waitForURL(/\/cb\?.*code=/);
  await page.goto(`${origin}/account/second-factor`);
  await page.fill('#code', totp(await page.textContent('pre.detail code')));
  await button(page, 'Turn on').click();
  await page.waitForSelector('text="Your recovery codes"');
  const recovery = (await page.textContent('main')).match(/\b[A-Z0-9]{4,}(?:-[A-Z0-9]{4,})+\b/i)[0];
  await button(page, 'Sign out').first().click();
  await page.waitForURL(/\/signin/);
  await page.goto(authorize({ auto_authorize: 'true' }));
  await button(page, 'Sign in with Example Corp').click();
  await page.fill('#code', recovery);
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/cb\?.*code=.*state=xyz|\/cb\?.*state=xyz.*code=/, { timeout: 120_000 });
});
