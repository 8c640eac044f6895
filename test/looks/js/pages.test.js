// Each page is loaded once and seen in several views (look.js).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { admin, as, browser, button, inTab, issuer, states, text, username, visit, wanted, chosen } from './pages.js';
import { all, asModal, focusShows, look, weight } from './look.js';
import { passes, walk, ways } from './keyboard.js';

// What the short form sees: the main page of most areas, of those that administrators have, too, as they see it.
const main = /^(signin|consent|chat|images|keys|flow|requests|request-recorded|providers|users|spend)$/;

for (const [name, who, path, prepare, opener] of wanted.filter(([name]) => all || main.test(name))) {
  test(`${name}: axe, both themes, forced colours, phone, focus, weight`, async (t) => {
    await inTab(t, who, async (page) => {
      await page.goto(new URL(path, issuer).href);
      const bytes = await weight(page);
      assert.ok(bytes.sent < 60_000 && bytes.whole < 150_000, `${name} has ${JSON.stringify(bytes)} bytes`);
      await prepare?.(page);
      await look(page, name);
      await focusShows(page);
      if (opener) await asModal(page, page.locator(opener).first(), `${name}-dialog`);
    });
  });
}

const byKeyboard = /^keys$/;

for (const [name, who, path, ...steps] of ways.filter(([name]) => chosen.test(name) && (all || byKeyboard.test(name)))) {
  test(`${name}: its main way by the keyboard alone`, async (t) => {
    const page = await as(t, who);
    await page.goto(new URL(path, issuer).href);
    await walk(page, steps);
    if (all) await passes(page);
  });
}

// Without scripting the menu, the forms and the confirmations work, and no button is seen that does nothing.
test('a person works without scripting: menu, key, code, group, theme', async (t) => {
  const off = async (who) => {
    const page = await visit(t, browser, { storageState: states[who], javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
    page.setDefaultTimeout(120_000);
    return page;
  };
  const office = await off(admin);
  await office.goto(`${issuer}/account`);
  await button(office, 'Menu').click();
  await office.getByRole('link', { name: 'Codes', exact: true }).click();
  await office.fill('#amount', '7.50');
  await button(office, 'Mint').click();
  const code = (await office.textContent('pre.secret')).trim();
  await office.goto(`${issuer}/admin/groups`);
  await office.fill('#name', 'night-shift');
  await button(office, 'Create group').click();
  await text(office, 'main', 'night-shift');

  const page = await off(username);
  await page.goto(`${issuer}/topup?account=own`);
  await page.fill('#code', code);
  await button(page, 'Redeem').click();
  await text(page, '[role=status]', '$7.50 was added');
  await page.goto(`${issuer}/account/keys?new=1`);
  await page.fill('#name', 'quiet');
  await button(page, 'Create key').click();
  assert.match(await page.textContent('pre.secret'), /sd-/);
  assert.equal(await page.locator('button.copy:visible').count(), 0);
  await page.getByRole('link', { name: 'I have copied it' }).click();
  await page.locator('summary[aria-label="More actions for quiet"]').click();
  await button(page.locator('details.confirm[open]'), 'Revoke for good').click();
  await page.locator('tr', { hasText: 'quiet' }).locator('.tag.revoked').waitFor();
  await button(page, 'Menu').click();
  await button(page, 'Dark').click();
  await page.locator('html[data-theme=dark]').waitFor();
  for (const path of ['/account', '/account/keys', '/account/models', '/requests', '/account/usage', '/connect', '/account/security']) {
    await page.goto(issuer + path);
    const idle = page.locator('main button[type=button]:visible');
    assert.equal(await idle.count(), 0, path);
  }
});
