// A user's account and the gateway's administration, by clicking. The tests of this file
// tell one story and run in order.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, test } from 'node:test';
import { serveApp } from './app.js';
import { focused, launch, pictures, variant, visit } from './chromium.js';
import { admin, clientId, clientSecret, issuer, password, redirectUri, username } from './gateway.js';

let browser;
let states; // of the browsers of user and administrator, who are signed in

before(async () => {
  await serveApp();
  browser = await launch();
  states = { [username]: await session(username), [admin]: await session(admin) };
});

after(() => browser?.close());

const button = (page, name) => page.getByRole('button', { name, exact: true });

async function fillSignIn(page, name, secret = password) {
  await page.fill('#username', name);
  await page.fill('#password', secret);
  await button(page, 'Sign in').click();
}

async function session(name) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${issuer}/signin`);
  await fillSignIn(page, name);
  await page.waitForURL(`${issuer}/account`);
  const state = await context.storageState();
  await context.close();
  return state;
}

// as opens a path as a signed-in user.
async function as(t, who, path, options = {}) {
  const page = await visit(t, browser, { storageState: states[who], ...options });
  const response = await page.goto(issuer + path);
  return Object.assign(page, { status: response.status() });
}

async function notice(page, text) {
  await page.waitForSelector('[role=status]');
  assert.match(await page.textContent('[role=status]'), text);
}

async function secret(page) {
  const text = (await page.textContent('pre.secret')).trim();
  await page.getByRole('link', { name: 'I have copied it' }).click();
  return text;
}

async function createKey(page, name, fill = async () => {}) {
  await page.goto(`${issuer}/account/keys`);
  if (!(await page.isVisible('#name'))) await page.getByText('Create a key', { exact: true }).click();
  await page.fill('#name', name);
  await fill();
  await button(page, 'Create key').click();
  return secret(page);
}

async function chat(key, model = 'small') {
  const response = await fetch(`${issuer}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, max_tokens: 200, messages: [{ role: 'user', content: 'Tell me about theatres.' }] }),
  });
  await response.text();
  return response.status;
}

// revoke opens what stands between a click and the end of something.
async function revoke(page, what, name) {
  await page.locator(`summary[aria-label="${what}"]`).click();
  await page.locator('details[open]').getByRole('button', { name, exact: true }).click();
}

// allow lets the app read the account of who is signed in, and is its code.
async function allow(page) {
  await page.goto(`${issuer}/api/oauth2/authorize?${new URLSearchParams({
    client_id: clientId, redirect_uri: redirectUri, response_type: 'code', scope: 'profile balance', state: 'xyz' })}`);
  await button(page, 'Allow').click();
  await page.waitForURL(/\/home\?/);
  return new URL(page.url()).searchParams.get('code');
}

// redeem is the access token for a code, or undefined.
async function redeem(code) {
  const response = await fetch(`${issuer}/api/oauth2/token`, { method: 'POST', body: new URLSearchParams({
    grant_type: 'authorization_code', code, redirect_uri: redirectUri, client_id: clientId, client_secret: clientSecret }) });
  return (await response.json()).access_token;
}

async function available(page) {
  await page.goto(`${issuer}/account`);
  return Number((await page.locator('.sum').first().textContent()).replace('$', ''));
}

test('sign in by keyboard alone, to where one wanted to go', async (t) => {
  const page = await visit(t, browser);
  await page.goto(`${issuer}/account/keys`);
  await page.waitForURL(/\/signin\?next=/);
  await focused(page, 'username');
  await page.keyboard.type(username);
  await page.keyboard.press('Tab');
  await page.keyboard.type('wrong');
  await page.keyboard.press('Enter');
  await page.waitForSelector('[role=alert]');
  await focused(page, 'password'); // the name is kept
  await page.keyboard.type(password);
  await page.keyboard.press('Enter');
  await page.waitForURL(`${issuer}/account/keys`);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, 'none');
  for (let i = 0; i < 40 && (await page.evaluate(() => document.activeElement.textContent)) !== 'Sign out'; i++) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/signin\?done=signed_out/);
  await page.goto(`${issuer}/account`);
  await page.waitForURL(/\/signin\?next=/);
});

variant('signing in redirects to no other site', async (t) => {
  for (const next of ['https://evil.example/', '//evil.example/', '/\\evil.example', '/%5cevil.example']) {
    const page = await visit(t, browser);
    await page.goto(`${issuer}/signin?next=${encodeURIComponent(next)}`);
    await fillSignIn(page, username);
    await page.waitForURL(`${issuer}/account`);
  }
});

variant('administration is not there for others', async (t) => {
  for (const path of ['/admin', '/admin/users', '/admin/spend', '/admin/users/1', '/admin/none']) {
    assert.equal((await as(t, username, path)).status, 404, path);
  }
  const page = await as(t, username, '/account');
  assert.equal(await page.getByRole('link', { name: 'Users and groups', exact: true }).count(), 0);
});

test('an administrator credits a user and takes some of it back', async (t) => {
  const page = await as(t, admin, '/account');
  await page.getByRole('link', { name: 'Users and groups', exact: true }).click();
  await page.fill('#q', username.toUpperCase());
  await button(page, 'Search').click();
  await page.getByRole('link', { name: 'This month', exact: true }).click();
  await page.waitForSelector('th[aria-sort=descending]');
  await page.getByRole('link', { name: username, exact: true }).click();
  await page.fill('#amount', '25.00');
  await page.fill('#reason', 'invoice 17');
  await button(page, 'Credit').click();
  await notice(page, /credited/);
  await page.fill('#amount', '5');
  await page.fill('#reason', 'a mistake');
  await button(page, 'Take back').click();
  await notice(page, /adjusted/);
  await page.fill('#amount', '500');
  await page.fill('#reason', 'too much');
  await button(page, 'Take back').click();
  await page.waitForSelector('[role=alert]');
  assert.equal(await page.inputValue('#reason'), 'too much');
  assert.equal(await page.locator('.figures dd').first().textContent(), '$20.00');
});

test('a key is made, used, seen in the usage, disabled and revoked', async (t) => {
  const page = await as(t, username, '/account');
  const key = await createKey(page, 'laptop');
  assert.match(key, /^sd-\w{43}$/);
  assert.ok(!(await page.content()).includes(key), 'the key is shown again');
  assert.equal(await chat(key), 200);
  assert.equal(await chat(key, 'large'), 200);

  // A request is charged shortly after its reply.
  let models = [];
  let left = 20;
  for (const end = Date.now() + 120_000; models.length < 2 && Date.now() < end; ) {
    left = await available(page);
    models = (await page.locator('.legend bdi').allTextContents()).sort();
  }
  assert.ok(left < 20);
  assert.deepEqual(models, ['large', 'small']);
  assert.equal(await page.locator('.plot a rect:not(.hit)').count(), 2);
  await page.getByText('View as table', { exact: true }).click();
  assert.ok(await page.getByRole('rowheader', { name: 'large' }).isVisible());
  await page.getByRole('link', { name: 'All usage' }).click();
  await page.getByRole('list', { name: 'What to show' }).getByRole('link', { name: 'Requests', exact: true }).click();
  await page.getByRole('list', { name: 'Group by' }).getByRole('link', { name: 'Provider', exact: true }).click();
  assert.match(await page.locator('.plot svg').getAttribute('aria-label'), /Requests by provider .*: 2 in all/);
  assert.equal(await page.locator('#receipts tbody tr').count(), 2);
  await page.locator('.plot a').click();
  await page.waitForURL(/\/requests\?from=/);
  assert.equal(await page.locator('.reqs tbody tr').count(), 2);

  await page.goto(`${issuer}/account/keys`);
  await page.getByRole('link', { name: 'Edit laptop' }).click();
  const dialog = page.getByRole('dialog', { name: 'Edit laptop' });
  await dialog.getByLabel('Requests a minute').fill('1234');
  await pictures(page, 'account-key-edit');
  await dialog.getByRole('button', { name: 'Save', exact: true }).click();
  await notice(page, /was changed/);
  assert.match(await page.textContent('tbody'), /1,234 requests\/min/);
  await revoke(page, 'More actions for laptop', 'Disable');
  await notice(page, /until you enable it/);
  assert.equal(await chat(key), 401);
  await page.getByRole('button', { name: 'Enable laptop' }).click();
  await notice(page, /again/);
  assert.equal(await chat(key), 200);
  await revoke(page, 'More actions for laptop', 'Revoke for good');
  await notice(page, /revoked/);
  assert.equal(await chat(key), 401);
});

test('a key does what it may and no more', async (t) => {
  const page = await as(t, username, '/account');
  const key = await createKey(page, 'narrow', async () => {
    await page.getByLabel('chat', { exact: true }).check();
    await page.fill('#models', 'sm*');
    await page.fill('#rpm', '60');
    await page.fill('#budget', '0.50');
    await page.selectOption('#window', 'day');
    await page.fill('#expiry', '2100-12-31');
  });
  assert.match(await page.textContent('tbody'), /may chat; models: sm\*; 60 requests\/min; budget \$0\.50 a day; until 31 Dec 2100/);
  assert.equal(await chat(key), 200);
  assert.equal(await chat(key, 'large'), 403);
  await page.getByText('Create a key', { exact: true }).click();
  await page.fill('#name', 'late');
  await page.fill('#expiry', '2001-01-01');
  await button(page, 'Create key').click();
  await page.waitForSelector('[role=alert]');
  assert.equal(await page.inputValue('#name'), 'late');
});

test('an administrator makes a user and a key, which the user has', async (t) => {
  const office = await as(t, admin, '/admin/users');
  await office.getByText('Create a user', { exact: true }).click();
  await office.fill('#username', 'carol');
  await office.fill('#email', 'carol@example.com');
  await button(office, 'Create user').click();
  const made = await secret(office);
  await office.getByText('Create a key', { exact: true }).click();
  await office.fill('#name', 'from the office');
  await office.fill('#allow', '192.0.2.0/24');
  await button(office, 'Create key').click();
  const key = await secret(office);
  assert.equal(await chat(key), 403);
  await office.getByRole('button', { name: 'Disable from the office' }).click();
  await notice(office, /cannot be used/);
  assert.equal(await chat(key), 401);
  const page = await visit(t, browser);
  await page.goto(`${issuer}/signin?next=/account/keys`);
  await page.fill('#username', 'carol');
  await page.fill('#password', made);
  await button(page, 'Sign in').click();
  await page.waitForURL(`${issuer}/account/keys`);
  assert.match(await page.textContent('tbody'), /from the office.*disabled.*from 192\.0\.2\.0\/24/s);
});

test('an app is allowed, seen and revoked', async (t) => {
  const page = await as(t, username, '/account');
  const token = await redeem(await allow(page));
  const userinfo = async () => (await fetch(`${issuer}/api/oauth2/userinfo`, { headers: { authorization: `Bearer ${token}` } })).status;
  assert.equal(await userinfo(), 200);
  await page.goto(`${issuer}/account`);
  await page.getByRole('link', { name: 'My apps', exact: true }).click();
  assert.match(await page.textContent('tbody'), /Weather Watch.*127\.0\.0\.1.*Your profile, Your balance/s);
  await revoke(page, 'Revoke access of Weather Watch', 'Revoke access');
  await notice(page, /no longer see/);
  assert.equal(await userinfo(), 401);
  // A consent is there before its code is redeemed, and the code ends with it.
  const code = await allow(page);
  await page.goto(`${issuer}/account/apps`);
  assert.match(await page.textContent('tbody'), /Weather Watch.*never/s);
  await revoke(page, 'Revoke access of Weather Watch', 'Revoke access');
  await notice(page, /no longer see/);
  assert.equal(await redeem(code), undefined);
});

variant('a developer token registers an app until it is revoked', async (t) => {
  const page = await as(t, username, '/account');
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Tokens', exact: true }).click();
  await page.fill('#name', 'ci');
  await button(page, 'Create token').click();
  const token = await secret(page);
  const register = async () => (await fetch(`${issuer}/api/oauth_apps`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Notes', redirect_uri: 'https://notes.example.com/cb' }),
  })).status;
  assert.equal(await register(), 200);
  await revoke(page, 'Revoke ci', 'Revoke for good');
  await notice(page, /revoked/);
  assert.equal(await register(), 401);
});

test('an app is registered, gets a logo and a second secret, and is deleted', async (t) => {
  const page = await as(t, username, '/account');
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'My apps', exact: true }).click();
  await page.getByRole('link', { name: 'New app', exact: true }).click();
  await page.fill('#name', 'Clock');
  await page.fill('#addresses', 'https://clock.example.com/cb\nhttps://clock.example.com/second');
  await button(page, 'Register app').click();
  await page.getByRole('link', { name: 'I have copied it' }).click();
  const logo = await page.screenshot({ clip: { x: 0, y: 0, width: 64, height: 64 } });
  await page.setInputFiles('#logo', { name: 'clock.png', mimeType: 'image/png', buffer: logo });
  await button(page, 'Use picture').click();
  await notice(page, /The app was changed/);
  await page.waitForFunction(() => document.querySelector('img.logo').naturalWidth === 96);
  await pictures(page, 'account-app');
  await button(page, 'Make a new secret').click();
  await page.getByRole('link', { name: 'I have copied it' }).click();
  await button(page, 'End it now').click();
  await notice(page, /The app was changed/);
  await page.getByText('Delete the app', { exact: true }).click();
  await page.fill('#delete-name', 'Clock');
  await button(page, 'Delete Clock for good').click();
  await notice(page, /The app was deleted/);
});

variant('a code is minted and redeemed, once', async (t) => {
  const office = await as(t, admin, '/admin/codes');
  await office.fill('#count', '2');
  await office.fill('#amount', '7.50');
  await button(office, 'Mint').click();
  const codes = (await secret(office)).split('\n');
  assert.equal(codes.length, 2);
  const page = await as(t, username, '/account');
  const had = await available(page);
  await page.getByRole('link', { name: 'Top up', exact: true }).first().click();
  await page.fill('#code', codes[0].toLowerCase());
  await button(page, 'Redeem').click();
  await notice(page, /\$7\.50 was added/);
  await page.fill('#code', codes[0]);
  await button(page, 'Redeem').click();
  await page.waitForSelector('[role=alert]');
  assert.ok(Math.abs((await available(page)) - had - 7.5) < 1e-6);
  await office.reload();
  assert.match(await office.textContent('tbody'), new RegExp(`used.*by ${username}`, 's'));
});

variant('the spending page lists users, models and keys', async (t) => {
  const page = await as(t, admin, '/admin/spend');
  for (const [by, texts] of [['Group', [/No group/]], ['Model', [/small/, /large/]], ['Key', [/laptop/, /narrow/]], ['User', [new RegExp(username)]]]) {
    await page.getByRole('list', { name: 'Group by' }).getByRole('link', { name: by, exact: true }).click();
    for (const text of texts) assert.match(await page.textContent('.spenders'), text);
  }
  await page.getByRole('row', { name: username }).getByRole('link', { name: 'Details' }).click();
  await page.waitForURL(/\/admin\/users\/\d+$/);
  assert.ok((await page.locator('.plot rect').count()) > 0);
});

test('a form sent twice does its work once', async (t) => {
  const page = await as(t, admin, '/admin/users');
  await page.getByRole('link', { name: username, exact: true }).click();
  await page.waitForSelector('form[action$="/money"]');
  const form = await page.evaluate(() => {
    const f = document.querySelector('form[action$="/money"]');
    return { action: f.action, fields: { ...Object.fromEntries(new FormData(f)), amount: '1', reason: 'once', kind: 'credit' } };
  });
  const send = () => page.request.post(form.action, { form: form.fields, headers: { origin: issuer }, maxRedirects: 0 });
  assert.equal((await send()).status(), 303);
  assert.equal((await send()).status(), 409);
  assert.equal((await page.request.post(form.action, { form: { ...form.fields, token: 'x' }, headers: { origin: issuer }, maxRedirects: 0 })).status(), 403);
});

test('an administrator disables a user, who is out at once, and enables the user again', async (t) => {
  const page = await as(t, username, '/account');
  const key = await createKey(page, 'until then');
  const office = await as(t, admin, '/admin/users');
  await office.getByRole('link', { name: username, exact: true }).click();
  await button(office, `Disable ${username}`).click();
  await notice(office, /disabled/);
  assert.equal(await chat(key), 401);
  await page.reload();
  await page.waitForURL(/\/signin/);
  await fillSignIn(page, username);
  await page.waitForSelector('text="This account is disabled."');
  await button(office, `Enable ${username}`).click();
  await notice(office, /enabled/);
  assert.equal(await chat(key), 200);
  await fillSignIn(page, username);
  await page.waitForURL(`${issuer}/account/keys`);
});

test('an invited person makes an account and is signed out by an administrator', async (t) => {
  const office = await as(t, admin, '/admin/users');
  await office.getByText('Invite people', { exact: true }).click();
  await office.fill('#people', 'dora@example.com');
  await pictures(office, 'invite');
  await button(office, 'Create links').click();
  const link = await secret(office);
  await office.waitForSelector('text="Open invitations"');
  await pictures(office, 'users');
  const page = await visit(t, browser);
  await page.goto(link);
  assert.equal(await page.inputValue('#username'), 'dora');
  await pictures(page, 'invited');
  await page.fill('#new', password);
  await page.fill('#again', password);
  await button(page, 'Create the account and sign in').click();
  await page.waitForURL(`${issuer}/account`);
  await page.goto(`${issuer}/account/security`);
  assert.match(await page.textContent('table'), /Chrome \d+ on Linux.*This device.*127\.0\.0\.1/s);
  await pictures(page, 'security');
  await office.goto(`${issuer}/admin/users`);
  await office.getByRole('link', { name: 'dora', exact: true }).click();
  await office.waitForSelector('text=/Chrome/');
  await pictures(office, 'user');
  await button(office.locator('#content'), 'Sign out').click();
  await notice(office, /session has ended/);
  await page.goto(`${issuer}/account`);
  await page.waitForURL(/\/signin\?next=/);
  await fillSignIn(page, 'dora');
  await page.waitForURL(`${issuer}/account`);
  await page.goto(`${issuer}/account/security`);
  await page.getByText('Delete the account', { exact: true }).click();
  await pictures(page, 'delete');
  await page.fill('#delete-username', 'dora');
  await page.fill('#delete-password', password);
  await button(page, 'Delete my account for good').click();
  await page.getByRole('heading', { name: 'Your account is deleted' }).waitFor();
});

test('a second factor is set up and asked for', async (t) => {
  const page = await as(t, admin, '/account/security');
  await page.getByRole('link', { name: 'Set up', exact: true }).click();
  const key = (await page.textContent('pre.detail')).replaceAll(' ', '');
  await pictures(page, 'secondfactor');
  await page.fill('#code', codeOf(key));
  await page.fill('#password', password);
  await button(page, 'Turn on').click();
  const codes = (await secret(page)).split('\n');
  assert.equal(codes.length, 10);
  await pictures(page, 'secondfactor-on');
  const other = await visit(t, browser);
  await other.goto(`${issuer}/signin`);
  await fillSignIn(other, admin);
  await focused(other, 'code');
  await pictures(other, 'code');
  await other.fill('#code', codes[0]);
  await button(other, 'Sign in').click();
  await other.waitForURL(`${issuer}/account`);
  await page.fill('#factor-code', codes[1]);
  await button(page, 'Turn off').click();
  await notice(page, /is off/);
});

// codeOf is an authenticator app: the code of a key now.
function codeOf(key) {
  let bits = '';
  for (const c of key) bits += 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0');
  const secret = Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const sum = createHmac('sha1', secret).update(step).digest();
  return String((sum.readUInt32BE(sum[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

test('a password is changed, and the user signs out everywhere', async (t) => {
  const page = await visit(t, browser);
  await page.goto(`${issuer}/signin?next=/account/security`);
  await fillSignIn(page, username);
  const other = await visit(t, browser, { storageState: await session(username) });
  const change = async (old, fresh, again = fresh) => {
    await page.fill('#old', old);
    await page.fill('#new', fresh);
    await page.fill('#again', again);
    await button(page, 'Change password').click();
  };
  await change('wrong', 'another long password');
  await page.waitForSelector('text="The current password is wrong."');
  await change(password, 'another long password', 'a different one');
  await page.waitForSelector('text="The two new passwords differ."');
  await change(password, 'another long password');
  await notice(page, /changed/);
  await other.goto(`${issuer}/account`);
  await other.waitForURL(/\/signin/);
  await change('another long password', password);
  await notice(page, /changed/);
  await page.getByText('Sign out everywhere', { exact: true }).first().click();
  await page.locator('details[open]').getByRole('button').click();
  await page.waitForURL(/\/signin\?done=signed_out/);
});
