// Every page of the console, as its visitor, user, lead or administrator sees it, and the data on it. The data is made by
// the pages themselves where they can make it.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { launch, visit } from '../../oauth/js/chromium.js';
import { admin, clientId, issuer, password, redirectUri, username } from '../../oauth/js/gateway.js';

export { admin, issuer, username } from '../../oauth/js/gateway.js';
export { visit } from '../../oauth/js/chromium.js';
export const lead = process.env.STAGEDOOR_LEAD;

const key = process.env.STAGEDOOR_KEY;
const streams = new AbortController();
export const button = (page, name) => page.getByRole('button', { name, exact: true });

export let browser;
export const states = {};
const tabs = {};

before(async () => {
  browser = await launch();
  for (const who of [username, lead, admin]) states[who] = await signIn(who);
  await Promise.all([ask('tokens=40'), ask('error=overloaded'), ask('status=500', 'a'.repeat(60)), ask('tokens=5', 'n1'),
    ask('tokens=20', 'small', true, process.env.STAGEDOOR_RECORDED_KEY)]);
  for (let n = 0; n < 4; n++) ask('pace=20, tokens=100000', 'n1', true);
});
after(async () => {
  streams.abort();
  await browser?.close();
});

async function signIn(name) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${issuer}/signin`);
  await page.fill('#username', name);
  await page.fill('#password', password);
  await button(page, 'Sign in').click();
  await page.waitForURL(`${issuer}/account`);
  states[name] = await context.storageState();
  await context.close();
  return states[name];
}

async function ask(play, model = 'small', stream = false, token = key) {
  await fetch(`${issuer}/v1/chat/completions`, {
    method: 'POST', signal: streams.signal,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-sandbox': play },
    body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'hello' }] }),
  }).then((r) => r.text()).catch(() => {});
}

class Hang extends Error {}

// inTab runs use with the tab of a user or guest. On a busy machine Chromium stops drawing a tab now and then and answers
// nothing about it any more. No page can cause or prevent that, so use runs once more in a new tab.
export async function inTab(t, who, use) {
  for (let more = 2; ; more--) {
    const page = await as(t, who);
    const ends = new AbortController();
    try {
      return await Promise.race([use(page), hangs(page, ends.signal)]);
    } catch (e) {
      if (!(e instanceof Hang) || more === 0) throw e;
      t.diagnostic(`the tab of ${who || 'a guest'} hangs; trying a new one`);
      delete tabs[who];
    } finally {
      ends.abort();
    }
  }
}

// hangs fails when the tab has not answered for two minutes.
async function hangs(page, signal) {
  while (!signal.aborted) {
    const silent = sleep(120_000, 'silent', { signal, ref: false }).catch(() => {});
    if (await Promise.race([page.evaluate('1').catch(() => {}), silent]) === 'silent') throw new Hang('the tab does not answer');
    await sleep(5_000, null, { signal }).catch(() => {});
  }
}

// as returns the tab of a user, of whom there is one for all tests, or of a guest.
export async function as(t, who) {
  if (!who) return visit(t, browser);
  if (!tabs[who]) {
    const context = await browser.newContext({ storageState: states[who] });
    context.setDefaultTimeout(120_000);
    tabs[who] = await context.newPage();
  }
  const page = tabs[who];
  const complaints = [];
  const heard = (m) => { if (/Content Security Policy|Refused/.test(m.text?.() ?? 'Refused')) complaints.push(String(m.text?.() ?? m)); };
  page.on('console', heard);
  page.on('pageerror', heard);
  t.after(() => { page.off('console', heard); page.off('pageerror', heard); assert.deepEqual(complaints, []); });
  return page;
}

export const text = (page, selector, wanted) => page.locator(selector, { hasText: wanted }).first().waitFor();
const link = (selector) => async (page) => Promise.all([page.waitForNavigation(), page.locator(selector).first().click()]);
const unfold = (page) => page.evaluate(() => { for (const d of document.querySelectorAll('main details:not(.confirm)')) d.open = true; });

async function logged(page) {
  for (let n = 0; n < 40 && await page.locator('.reqs tbody tr').count() < 4; n++) { await page.waitForTimeout(250); await page.reload(); }
}

async function chat(page) {
  await page.check('#both');
  await page.fill('#model-b', 'a'.repeat(60));
  await page.fill('#question', `Compare **these**:\n\n\`\`\`go\n${'x'.repeat(200)}\n\`\`\``);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => [...document.querySelectorAll('.answer .measure')].filter((m) => m.textContent.includes('$')).length === 2);
  await page.waitForURL(/chat=conv_/);
}

async function paint(page) {
  await page.fill('#count', '2');
  await page.fill('#prompt', `a paper boat ${'w'.repeat(80)}`);
  await page.locator('#go', { hasText: '$' }).waitFor();
  await page.keyboard.press('Control+Enter');
  await page.waitForFunction(() => document.querySelectorAll('#pictures [data-do=save]:not([hidden])').length === 2 && [...document.querySelectorAll('#pictures .facts')].every((f) => f.textContent.includes('$')));
}

async function film(page) {
  for (const [n, prompt] of [[1, 'a boat [sandbox: job=1ms]'], [2, 'a fox [sandbox: job=600s]'], [3, 'a crash [sandbox: job=1ms fail=50]']]) {
    await page.fill('#prompt', prompt);
    await page.locator('#create [type=submit]').click();
    await page.waitForFunction((n) => document.querySelectorAll('.job:not([hidden])').length === n && !document.querySelector('#create [type=submit]').disabled, n);
  }
  for (const end of ['completed', 'failed']) await page.locator(`.job.${end}`).waitFor();
}

export const authorize = `/api/oauth2/authorize?${new URLSearchParams({ client_id: clientId, redirect_uri: redirectUri, response_type: 'code', scope: 'profile balance', state: 'x' })}`;

// allow lets the app read the account. The app is not there, so the browser shows its own page of an error.
async function allow(page) {
  await page.goto(issuer + authorize);
  await button(page, 'Allow').click();
  await page.waitForURL(/^chrome-error:/, { waitUntil: 'commit' });
  await page.goto(`${issuer}/account/apps`);
}

// pages are [name, who, path, what is done before the looks, a dialog's opener].
const list = [
  ['signin', '', '/signin'],
  ['signin-wrong', '', '/signin', async (page) => { await page.fill('#username', 'none'); await page.fill('#password', 'wrong'); await page.keyboard.press('Enter'); await page.waitForSelector('[role=alert]'); }],
  ['authorize', '', authorize],
  ['consent', username, authorize, (page) => text(page, 'h1', 'Allow access?')],
  ['failure', '', authorize.replace('9%2Fcb', '9%2Fother')],
  ['first', '', process.env.STAGEDOOR_FIRST_URL, async (page) => { await page.fill('#question', 'hello'); await page.keyboard.press('Enter'); await page.waitForSelector('#measure:not([hidden])'); }],
  ['chat', username, '/chat'],
  ['chat-answers', username, '/chat', chat, '#code-open'],
  ['images', username, '/images'],
  ['images-made', username, '/images', paint, '#pictures [data-do=edit]'],
  ['videos', username, '/live', (page) => text(page, '#line', 'live')],
  ['videos-made', username, '/live', film, '.job.completed [data-do=remix]'],
  ['videos-guest', '', '/live', (page) => page.locator('#key').waitFor()],
  ['models', username, '/account/models', unfold],
  ['models-none', username, '/account/models?q=nosuchmodel'],
  ['model', username, '/account/models/small'],
  ['model-long', username, `/account/models/${'a'.repeat(60)}`],
  ['account', username, '/account'],
  ['keys', username, '/account/keys'],
  ['keys-new', username, '/account/keys?new=1', unfold],
  ['keys-more', username, '/account/keys', (page) => page.locator('details.confirm summary').first().click()],
  ['key', username, '/account/keys', async (page) => page.goto(await page.locator('.stack td.buttons a').first().evaluate((a) => a.href))],
  ['key-secret', username, '/account/keys?new=1', async (page) => { await page.fill('#name', 'laptop'); await button(page, 'Create key').click(); await page.waitForSelector('pre.secret'); }],
  ['usage', username, '/account/usage', unfold],
  ['topup', username, '/topup?account=own'],
  ['security', username, '/account/security', unfold],
  ['secondfactor', username, '/account/second-factor'],
  ['connect', username, '/connect'],
  ['apps', username, '/account/apps', allow],
  ['tokens', username, '/account/tokens'],
  ['search', username, '/search?q=a'],
  ['search-none', username, '/search?q=nosuchthing'],
  ['goto', username, '/account', async (page) => { await page.keyboard.press('Control+k'); await page.locator('dialog:modal').waitFor(); await page.keyboard.type('ke'); await page.locator('.goto .hits li').first().waitFor(); }],
  ['requests-own', username, '/requests', logged],
  ['missing', username, '/account/nosuchpage'],
  ['signout', username, '/signout'],
  ['flow', admin, '/flow', async (page) => { await text(page, '#line', 'live'); await page.locator('#active tbody tr').first().waitFor(); }],
  ['flow-request', admin, '/flow', async (page) => { await link('#active a')(page); await page.locator('#waterfall li').first().waitFor(); }],
  ['flow-unknown', admin, '/flow/requests/req_of_yesterday'],
  ['requests', admin, '/requests', async (page) => { await logged(page); await unfold(page); }],
  ['requests-none', admin, '/requests?q=nosuchrequest'],
  ['request', admin, '/requests?q=status:200', async (page) => { await logged(page); await link('.reqs th a')(page); }],
  ['request-recorded', admin, '/requests?q=key:recorded', async (page) => { await link('.reqs th a')(page); await page.locator('.recorded').waitFor(); await unfold(page); }],
  ['keys-record', admin, '/admin/keys?q=ci', (page) => page.locator('details.confirm summary').first().click()],
  ['request-failed', admin, '/requests?q=status:5xx', link('.reqs th a')],
  ['providers', admin, '/flow/providers', (page) => text(page, '#line', 'live')],
  ['provider', admin, '/flow/providers', link('.provs tbody th a')],
  ['provider-shapes', admin, '/flow/providers/new'],
  ['provider-new', admin, '/flow/providers/new?shape=chat', unfold],
  ['provider-change', admin, '/flow/providers/change?kind=providers&name=narrow', unfold],
  ['provider-review', admin, '/flow/providers/change?kind=providers&name=narrow', async (page) => { await page.getByLabel('limits.rpm').fill('601'); await button(page, 'Review').click(); await page.locator('.diff').waitFor(); }],
  ['model-change', admin, '/flow/providers/change?kind=models&name=small', unfold],
  ['users', admin, '/admin/users', unfold],
  ['users-none', admin, '/admin/users?q=nosuchuser'],
  ['user', admin, '/admin/users?q=anna', async (page) => { await link('.stack tbody th a')(page); await unfold(page); }],
  ['groups', admin, '/admin/groups', unfold],
  ['group', admin, '/admin/groups', async (page) => { await link('.stack tbody th a')(page); await unfold(page); }],
  ['keys-all', admin, '/admin/keys'],
  ['spend', admin, '/admin/spend', unfold],
  ['spend-key', admin, '/admin/spend?by=key', unfold],
  ['codes', admin, '/admin/codes', unfold],
  ['audit', admin, '/admin/audit', unfold],
  ['led', lead, '/group', unfold],
  ['led-keys', lead, '/group/keys', unfold],
  ['led-spend', lead, '/group/spend', unfold],
  ['actors', admin, '/flow/actors', (page) => page.locator('#tree li').first().waitFor()],
];

// chosen matches the names of the pages that are wanted.
export const chosen = new RegExp(process.env.STAGEDOOR_ONLY ?? '');
// wanted are the pages whose names match STAGEDOOR_ONLY.
export const wanted = list.filter(([name]) => chosen.test(name));
