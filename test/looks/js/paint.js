// Bytes of every page, and milliseconds until the browser has first painted it, without a cache and with one. Each page is
// loaded STAGEDOOR_ROUNDS times in each way. The median is judged, so the machine must do nothing else; on a busy one the
// least is nearer to what the page itself costs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { as, issuer, wanted } from './pages.js';
import { firstPaint, weight } from './look.js';

const rounds = Number(process.env.STAGEDOOR_ROUNDS ?? 5);
const late = 200; // milliseconds
const large = /^(flow|images|videos)/;
const median = (times) => times.toSorted((a, b) => a - b)[times.length >> 1];

// paints loads the address in a tab again and again, and returns its bytes and the times with and without a cache. The tab
// has shown a page of the gateway before, so no time has the start of a process of the browser in it.
async function paints(page, address) {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  const times = { cold: [], warm: [] };
  for (let n = 0; n < 2 * rounds; n++) {
    await session.send('Network.setCacheDisabled', { cacheDisabled: n % 2 === 0 });
    await page.goto(address);
    times[n % 2 ? 'warm' : 'cold'].push(await firstPaint(page));
  }
  const bytes = await weight(page);
  await session.detach();
  return { ...times, bytes };
}

test('bytes and first paint', async (t) => {
  const line = (name, cells) => t.diagnostic(name.padEnd(18) + cells.map((c) => String(c).padStart(8)).join(''));
  line('page', ['html', 'sent', 'whole', 'cold', 'least', 'warm', 'least']);
  const seen = new Set();
  const wrong = [];
  for (const [name, who, path, prepare] of wanted) {
    // Some pages have an address only after they were opened from another one.
    const page = await as(t, who);
    await page.goto(new URL(path, issuer).href);
    if (prepare) await prepare(page);
    const address = page.url().startsWith('http') ? page.url() : new URL(path, issuer).href;
    if (seen.has(who + address)) continue;
    seen.add(who + address);
    const { cold, warm, bytes } = await paints(page, address);
    line(name, [bytes.html, bytes.sent, bytes.whole, median(cold), Math.min(...cold), median(warm), Math.min(...warm)].map(Math.round));
    if (bytes.sent >= (large.test(name) ? 150_000 : 60_000)) wrong.push(`${name} has ${bytes.sent} bytes`);
    if (median(cold) >= late) wrong.push(`${name} is first painted after ${Math.round(median(cold))} ms`);
  }
  assert.deepEqual(wrong, []);
});
