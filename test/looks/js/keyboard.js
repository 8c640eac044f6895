// The main way of each page by the keyboard alone. Nothing is clicked, and no script moves the focus.
import assert from 'node:assert/strict';
import { admin, authorize, issuer, lead, username } from './pages.js';
import { password } from '../../oauth/js/gateway.js';
import { rings } from './look.js';

// The steps of a way: ">selector" is reached by Tab and "<selector" by Shift+Tab, "=text" is typed, "?selector" is
// awaited, "!selector" has the focus now, "@" returns to the first page from an app that is not there, and
// everything else is a key. Selectors are those of Playwright.
const named = (name, role = 'button') => `role=${role}[name="${name}"]`;
export const ways = [
  ['signin', '', '/signin', '!#username', `=${username}`, '>#password', `=${password}`, 'Enter', '?nav.side'],
  ['signin-wrong', '', '/signin', `=${username}`, '>#password', '=wrong', 'Enter', '?[role=alert]', '!#password'],
  ['consent', lead, authorize, `>${named('Use another account')}`, `<${named('Allow')}`, `<${named('Deny')}`, 'Enter', '@', `?${named('Allow')}`],
  ['first', '', process.env.STAGEDOOR_FIRST_URL, '!#question', '=hello', 'Enter', '?#measure:not([hidden])'],
  ['chat', username, '/chat', '!#question', '=hello', 'Enter', '?.answer .measure >> text=$', '<#code-open', 'Enter', '?dialog:modal', 'Escape', '!#code-open'],
  ['images', username, '/images', '>#prompt', '=a paper boat', '>#go >> text=$', 'Enter', '?#pictures [data-do=save]:visible', '>#pictures [data-do=edit] >> nth=0', 'Enter', '?dialog:modal', 'Escape', '!#pictures [data-do=edit] >> nth=0'],
  ['videos', username, '/live', '>#prompt', '=a boat [sandbox: job=1ms]', '>#create [type=submit]', 'Enter', '?.job.completed', '>.job.completed [data-do=remix] >> nth=0', 'Enter', '?dialog:modal', 'Escape', '!.job.completed [data-do=remix] >> nth=0'],
  ['models', username, '/account/models', '/', '!#q', '=sma', 'Enter', '?tbody tr', `>${named('small', 'link')}`, 'Enter', '?h1 >> text=small', `>${named('Try it', 'link')}`, 'Enter', '?#question'],
  ['account', username, '/account', `>${named('Top up', 'link')}`, 'Enter', '?#code'],
  ['keys', username, '/account/keys', `>${named('New key', 'link')}`, 'Enter', '?#name', '>#name', '=by keyboard', 'Enter', '?pre.secret', `>${named('I have copied it', 'link')}`, 'Enter', `?${named('Edit by keyboard', 'link')}`, `>${named('Edit by keyboard', 'link')}`, 'Enter', '?dialog:modal', 'Escape', `!${named('Edit by keyboard', 'link')}`, '>summary[aria-label="More actions for by keyboard"]', 'Enter', `>${named('Revoke for good')}`, 'Enter', '?tr:has-text("by keyboard") .tag.revoked'],
  ['usage', username, '/account/usage', `>${named('Model', 'link')}`, 'Enter', '?main h1'],
  ['topup', username, '/topup?account=own', '!#code', '=AAAA-AAAA-AAAA-AAAA-AAAA-AAAA', `>${named('Redeem')}`, 'Enter', '?[role=alert]'],
  ['security', username, '/account/security', '>#old', '=wrong', '>#new', '=correct horse 2', '>#again', '=correct horse 2', `>${named('Change password')}`, 'Enter', '?[role=alert]'],
  ['secondfactor', username, '/account/second-factor', '!#code', '=000000', '>#password', '=wrong', `>${named('Turn on')}`, ' ', '?[role=alert]'],
  ['connect', username, '/connect', '>main [type=radio]', 'ArrowRight', `>${named('New key', 'link')}`, 'Enter', '?#name'],
  ['apps', username, '/account/apps', `>${named('New app', 'link')}`, 'Enter', '?#name', '>#name', '=Keyboard app', '>#addresses', '=http://127.0.0.1:9/cb', `>${named('Register app')}`, 'Enter', '?pre.secret'],
  ['tokens', username, '/account/tokens', '>#name', '=keyboard', 'Enter', '?pre.secret'],
  ['search', username, '/search', '!#q', '=key', 'Enter', '?main li a', '>main li a', 'Enter', '?nav.side'],
  ['goto', username, '/account', 'Control+k', '?dialog:modal', '=keys', '?.goto .hits li', 'Escape', 'Control+k', '=keys', '?.goto .hits li:first-child:has-text("Keys")', 'Enter', '?h1 >> text=Keys'],
  ['requests', admin, '/requests', '/', '!#q', '=status:200', 'Enter', '?.reqs tbody tr', 'j', '!.reqs tbody a >> nth=0', 'Enter', '?.facts-row', '>main .crumb a', 'Enter', '?.reqs'],
  ['flow', admin, '/flow', '>#text', '=narrow', '?#active tbody tr', '>#active tbody a >> nth=0', 'Enter', '?#waterfall li'],
  ['providers', admin, '/flow/providers', `>${named('Pause narrow')}`, 'Enter', `?${named('Resume narrow')}`, `!${named('Resume narrow')}`, 'Enter', `?${named('Pause narrow')}`],
  ['provider-new', admin, '/flow/providers/new', '>.shapes a >> nth=0', `>${named('sandbox', 'link')}`, 'Enter', '?#name', '>#name', '=by-keyboard', `>${named('Test and review')}`, 'Enter', '?.diff'],
  ['provider-change', admin, '/flow/providers/change?kind=providers&name=narrow', '>[name*=rpm]', 'Control+a', '=601', `>${named('Review')}`, 'Enter', '?.diff'],
  ['users', admin, '/admin/users', '>summary >> text=Invite people', 'Enter', '>#people', '=kim@example.com', `>${named('Create links')}`, 'Enter', '?pre.secret'],
  ['user', admin, '/admin/users?q=anna', `>${named('anna', 'link')}`, 'Enter', '?#amount', '>#amount', '=1', '>#reason', '=by keyboard', `>${named('Credit')}`, 'Enter', '?[role=status]'],
  ['groups', admin, '/admin/groups', '>#name', '=keyboard', 'Enter', '?main >> text=keyboard'],
  ['group', admin, '/admin/groups', `>${named('Design', 'link')}`, 'Enter', '?#user', '>#user', '=nosuchuser', 'Enter', '?[role=alert]', '!#user'],
  ['keys-all', admin, '/admin/keys', '>#q', '=ci', 'Enter', '?tbody tr'],
  ['spend', admin, '/admin/spend', `>${named('Key', 'link')}`, 'Enter', '?a[aria-current] >> text=Key', '>main table a', 'Enter', '?.reqs'],
  ['codes', admin, '/admin/codes', '>#amount', '=1', `>${named('Mint')}`, 'Enter', '?pre.secret'],
  ['audit', admin, '/admin/audit', '>#action', '=key', 'Enter', '?tbody tr'],
  ['actors', admin, '/flow/actors', '?#tree li'],
  ['led', lead, '/group', '>summary >> text=Invite people', 'Enter', '>#people', '=lee@example.com', `>${named('Create links')}`, 'Enter', '?pre.secret'],
  ['led-keys', lead, '/group/keys', '>summary, main a, main input', 'Enter', '?main h1'],
  ['missing', username, '/account/nosuchpage', `>${named('To your account', 'link')}`, 'Enter', '?h1'],
  ['signout', username, '/signout', `>${named('Stay', 'link')}`, 'Enter', '?nav.side'],
];

const most = 150; // presses of Tab to reach anything

// reach presses a key until an element has the focus. Everything on the way must show the focus and be on the screen.
async function reach(page, target, key) {
  for (let n = 0; n <= most; n++) {
    await page.waitForLoadState();
    await page.evaluate(rings);
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      if (!globalThis.rings || !e || e === document.body) return '';
      const r = e.getBoundingClientRect();
      const seen = r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth;
      return globalThis.rings(e) && seen ? '' : e.outerHTML.slice(0, 120);
    });
    assert.equal(at, '', 'the focus is not seen');
    if (await focused(target)) return;
    await page.keyboard.press(key);
  }
  assert.fail(`${target} is not reached by ${key}`);
}

const focused = async (target) => await target.count() > 0 && target.first().evaluate((e) => e === document.activeElement);

// walk goes a way on a page that is open. Where there is a side bar, its first step is the link that skips it.
export async function walk(page, steps) {
  const began = page.url();
  if (await page.locator('nav.side').count() && await page.evaluate(() => document.activeElement === document.body)) {
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
  }
  for (const step of steps) {
    const target = step.length > 1 && '><?!'.includes(step[0]) && page.locator(step.slice(1));
    switch (target || step === '@' ? step[0] : step[0] === '=' && step.length > 1 ? '=' : 'key') {
      case '>': await reach(page, target, 'Tab'); break;
      case '<': await reach(page, target, 'Shift+Tab'); break;
      case '?': await target.first().waitFor({ timeout: 120_000 }); break;
      case '!': {
        for (let n = 0; n < 3000 && !await focused(target); n++) await page.waitForTimeout(20);
        assert.ok(await focused(target), `${step.slice(1)} has not the focus`);
        break;
      }
      case '@': {
        for (let n = 0; n < 3000 && !page.url().startsWith('chrome-error:'); n++) await page.waitForTimeout(20);
        await page.goto(began);
        break;
      }
      case '=': await page.keyboard.type(step.slice(1)); break;
      default: await page.keyboard.press(step);
    }
  }
}

// passes presses Tab through the whole page, in one direction and then the other, and expects to leave it at its ends.
export async function passes(page) {
  for (const key of ['Tab', 'Shift+Tab']) {
    const controls = await page.locator('a[href], button, input, select, textarea, summary, [tabindex="0"]').count();
    await page.evaluate(() => document.activeElement.blur());
    let n = 0;
    do await page.keyboard.press(key); while (n++ < controls + 10 && await page.evaluate(() => document.activeElement !== document.body));
    assert.ok(n <= controls + 10, `the focus does not leave the page by ${key}`);
  }
}
