// What the page does with what it hears. The page is the gateway's, the jobs are
// invented (jobs.js): so they can move as fast and break as often as wanted.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, pictures, screens, variant } from '../../oauth/js/chromium.js';
import { button, cards, line, signedIn } from './gateway.js';
import { job, Line } from './jobs.js';

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const now = () => Math.floor(Date.now() / 1000);
const done = () => ({ status: 'completed', progress: 100, completed_at: now(), expires_at: now() + 3600 });
const failed = () => ({ status: 'failed', completed_at: now(), error: { code: 'moderation_blocked', message: 'The prompt was blocked by moderation.' } });

async function open(t, jobs, options) {
  const gateway = new Line(jobs);
  const page = await signedIn(t, browser, options, (p) => gateway.install(p));
  await line(page, 'live');
  await cards(page, Math.min(jobs.length, 60));
  return { page, gateway };
}

const text = (page, selector) => page.locator(selector).first().textContent();

test('a job moves from waiting to done without a reload', async (t) => {
  const { page, gateway } = await open(t, [job(1)]);
  assert.equal(await text(page, '.job .tag'), 'waiting');
  gateway.move(1, { status: 'in_progress', progress: 42 });
  await page.waitForSelector('.job.in_progress');
  assert.equal(await text(page, '.where'), '42 %');
  assert.equal(await page.getByRole('progressbar').getAttribute('aria-label'), 'Progress of job number 1: a paper boat in the rain');
  assert.equal(await page.locator('.job progress').evaluate((p) => p.value), 42);
  assert.equal(await page.locator('.job .tools button:visible').count(), 0);
  gateway.move(1, done());
  await button(page.locator('.job'), /^Play /).waitFor();
  assert.equal(await page.locator('.job progress').isVisible(), false);
  for (const name of [/^Remix/, /^Save/, /^Delete/]) assert.ok(await button(page.locator('.job'), name).isVisible());
});

test('new jobs stand first and deleted ones go', async (t) => {
  const { page, gateway } = await open(t, [job(5), job(2), job(9)]);
  gateway.move(7, {});
  gateway.move(11, {});
  await cards(page, 5);
  const order = () => page.locator('.job .prompt').allTextContents().then((all) => all.map((p) => Number(/\d+/.exec(p)[0])));
  assert.deepEqual(await order(), [11, 9, 7, 5, 2]);
  gateway.remove(9);
  await cards(page, 4);
  assert.deepEqual(await order(), [11, 7, 5, 2]);
});

test('what a job says is text', async (t) => {
  const evil = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>';
  const { page } = await open(t, [job(1, { prompt: evil, ...failed(), error: { code: 'x', message: evil } })]);
  assert.equal(await text(page, '.job .prompt'), evil);
  assert.equal(await text(page, '.job .problem'), evil);
  assert.equal(await page.evaluate(() => window.broken), undefined);
});

variant('the jobs to show can be chosen, by keyboard too', async (t) => {
  const { page } = await open(t, [job(1), job(2, done()), job(3, failed()), job(4, { status: 'in_progress' })]);
  assert.deepEqual(await page.locator('[data-count]').allTextContents(), ['4', '2', '1', '1']);
  await page.getByRole('searchbox', { name: 'Search prompts' }).fill('NUMBER 3');
  await cards(page, 1);
  await page.getByRole('searchbox').fill('nowhere');
  await page.locator('#nothing').waitFor();
  await page.getByRole('searchbox').fill('');
  await cards(page, 4);
  await page.getByRole('radio', { name: /^All/ }).focus();
  await page.keyboard.press('ArrowRight');
  await cards(page, 2);
  await page.keyboard.press('ArrowRight');
  await cards(page, 1);
  await page.keyboard.press('ArrowRight');
  await cards(page, 1);
  assert.match(await text(page, '.job:not([hidden]) .problem'), /moderation/);
});

variant('a curtain opens with the progress, and a job that waits shows its position', async (t) => {
  const gateway = new Line([job(1), job(2, { status: 'in_progress', progress: 50, created_at: now() - 20 })]);
  const page = await signedIn(t, browser, {}, async (p) => {
    await gateway.install(p);
    await p.route(/\/live\/queue$/, (route) => route.fulfill({ json: { positions: { [job(1).id]: 3 } } }));
  });
  const waiting = page.locator('.job', { hasText: 'number 1:' });
  const moving = page.locator('.job', { hasText: 'number 2:' });
  await waiting.getByText('position 3', { exact: true }).waitFor();
  const width = (card) => card.locator('.curtain [fill="url(#folds)"]').first().getAttribute('width');
  assert.deepEqual([await width(waiting), await width(moving)], ['160', '90']);
  assert.match(await moving.locator('.left').textContent(), /^about 2\d s left$/);
  gateway.move(2, done());
  await moving.locator('.curtain').waitFor({ state: 'hidden' });
});

test('several videos are selected and deleted at once, and what is refused stays', async (t) => {
  const { page } = await open(t, [job(1, done()), job(2, failed()), job(3, { status: 'in_progress' }), job(4, done())]);
  await page.route(/\/live\/videos\/video_/, (route) => (route.request().method() !== 'DELETE' ? route.fallback() : route.request().url().includes(job(4).id)
    ? route.fulfill({ status: 503, json: { error: { message: 'try again later' } } }) : route.fulfill({ json: {} })));
  assert.equal(await page.getByRole('checkbox', { name: /^Select job/ }).count(), 0); // until they are wanted
  await button(page, /^Select$/).click();
  for (const box of await page.getByRole('checkbox', { name: /^Select job/ }).all()) await box.check();
  assert.equal(await text(page, '#picked span'), '4 selected');
  await button(page, 'Save 2').waitFor();
  await button(page, 'Delete 3').click();
  await button(page.locator('#remove'), 'Delete for good').click();
  await page.locator('#remove-refused', { hasText: '1 of 3 videos are not deleted: try again later' }).waitFor();
  await cards(page, 2);
  await button(page.locator('#remove'), 'Keep').click();
  await button(page, 'Select none').click();
  await page.locator('#picked').waitFor({ state: 'hidden' });
});

variant('a card is used by keyboard, and a failed one is edited and tried again', async (t) => {
  const { page } = await open(t, [job(1, done()), job(2, { ...failed(), seconds: '6', prompt: 'a storm' })]);
  await page.locator('.job.completed').focus();
  await page.keyboard.press('r');
  await page.locator('#remix[open]').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.job.completed:focus').waitFor(); // once the dialog is closed
  await page.keyboard.press('Delete');
  await page.locator('#remove[open]').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.job.completed:focus').waitFor(); // once the dialog is closed
  const asked = page.waitForRequest((r) => /\/videos\/video_0+1\/content$/.test(r.url())); // it has no video to show
  await page.keyboard.press(' ');
  await asked;
  await button(page, /^Edit and retry/).click();
  assert.deepEqual([await page.inputValue('#prompt'), await page.inputValue('[name=seconds]:checked')], ['a storm', '6']); // which a program chose
  await page.waitForFunction(() => document.querySelector('#create [type=submit]').textContent === 'Generate for $0.60');
});

test('a lost connection comes back by itself, with what was missed', async (t) => {
  const { page, gateway } = await open(t, [job(1), job(2)]);
  gateway.move(1, { status: 'in_progress', progress: 10 });
  await page.waitForSelector('.job.in_progress');
  const last = gateway.revision;
  gateway.cut();
  await line(page, 'connection lost');
  gateway.move(1, done());
  gateway.mend();
  await line(page, 'live');
  await page.waitForSelector('.job.completed');
  assert.deepEqual(gateway.subscriptions.map((s) => s.after), [0, last]);
});

variant('a snapshot after a long absence takes away what is gone', async (t) => {
  const { page, gateway } = await open(t, [job(1), job(2), job(3)]);
  gateway.cut();
  await line(page, 'connection lost');
  gateway.jobs.delete(job(2).id);
  gateway.subscribed = function (socket) { // a watcher that was away for too long gets a snapshot
    for (const j of this.jobs.values()) this.send(socket, 'snapshot', j);
    socket.send(JSON.stringify({ type: 'ready', revision: this.revision }));
  };
  gateway.mend();
  await line(page, 'live');
  await cards(page, 2);
});

variant('attempts to come back become rare, and end when the session has', async (t) => {
  const { page, gateway } = await open(t, [job(1)]);
  await page.unroute(/\/live\/(videos|receipts)/);
  let asked = 0;
  await page.route(/\/live\/videos/, (route) => {
    asked++;
    return asked < 3 ? route.abort() : route.fulfill({ status: 401, json: { error: { message: 'you are signed out' } } });
  });
  gateway.cut();
  await line(page, 'you are signed out');
  assert.equal(asked, 3);
  assert.equal(await page.locator('.job').count(), 1);
});

variant('who listens hears what ended, in one sentence and not what moved', async (t) => {
  const { page, gateway } = await open(t, [1, 2, 3, 4, 5].map((n) => job(n)));
  const heard = [];
  await page.exposeFunction('heard', (s) => heard.push(s));
  await page.evaluate(() => new MutationObserver(() => window.heard(document.getElementById('news').textContent)).observe(document.getElementById('news'), { childList: true, characterData: true, subtree: true }));
  for (let p = 1; p < 20; p++) gateway.move(1, { status: 'in_progress', progress: p });
  for (const n of [1, 2, 3, 4]) gateway.move(n, done());
  await page.waitForFunction(() => document.getElementById('news').textContent !== '');
  assert.deepEqual(heard, ['4 videos are done']);
});

test('a key stays in the tab and never in an address', async (t) => {
  const { page } = await open(t, []);
  const seen = [];
  page.on('request', (r) => seen.push({ url: r.url(), auth: r.headers().authorization }));
  await page.route(/\/v1\/videos\/events/, (route) => route.fulfill({ headers: { 'content-type': 'text/event-stream' },
    body: `retry: 2000\n\n: keep-alive\n\nevent: snapshot\nid: 7\ndata: ${JSON.stringify(job(1))}\n\nevent: ready\nid: 7\ndata: {}\n\n` }));
  await page.getByText('Show another key’s videos').click();
  await page.fill('#key', 'sd-secret');
  await button(page, 'Use this key').click();
  await cards(page, 1);
  await page.waitForFunction(() => document.getElementById('line').textContent.startsWith('connection lost'));
  const streams = () => seen.filter((s) => s.url.endsWith('/v1/videos/events'));
  assert.equal(streams()[0].auth, 'Bearer sd-secret');
  assert.ok(seen.every((s) => !s.url.includes('sd-secret')));
  await page.reload();
  await cards(page, 1);
  assert.equal(await page.evaluate(() => localStorage.length), 0);
  await page.getByText('Show another key’s videos').click();
  await button(page, 'Forget the key').click();
  await line(page, 'live');
  await cards(page, 0);
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
});

variant('jobs beyond the snapshot are shown when asked for', async (t) => {
  const jobs = Array.from({ length: 1000 }, (_, n) => job(n + 150, done()));
  const { page } = await open(t, jobs);
  const newest = [...jobs].reverse().concat(Array.from({ length: 150 }, (_, n) => job(149 - n, done())));
  await page.route(/\/live\/videos\?/, (route) => {
    const after = new URL(route.request().url()).searchParams.get('after');
    const from = after ? newest.findIndex((j) => j.id === after) + 1 : 0;
    const data = newest.slice(from, from + 100);
    return route.fulfill({ json: { object: 'list', data, last_id: data.at(-1)?.id ?? null, has_more: from + 100 < newest.length } });
  });
  const more = button(page, 'Show older videos');
  await more.click();
  await cards(page, 120);
  // To draw the page for each click would take a minute of a processor. The next ones are here already.
  await more.evaluate(async (button) => {
    for (let n = 120; n < 960; n += 60) {
      button.click();
      while (button.disabled) await undefined;
    }
  });
  await cards(page, 960);
  for (let n = 1020; n < 1150 + 60; n += 60) { // some of these are not, so they are asked for
    await more.click();
    await cards(page, Math.min(n, 1150));
  }
  await more.waitFor({ state: 'hidden' });
  assert.match(await page.locator('.job .prompt').last().textContent(), /^job number 0:/);
});

// Times depend on what else the machine does, so they are only printed. What makes the page slow is counted.
variant('many jobs move with one drawing a frame', async (t) => {
  const count = 1000;
  const { page, gateway } = await open(t, Array.from({ length: count }, (_, n) => job(n, { status: 'in_progress' })), { viewport: screens.desktop });
  await page.evaluate(() => {
    window.frames = [];
    window.drawings = 0;
    window.writes = 0;
    new MutationObserver((records) => { // is called once after each drawing
      drawings++;
      writes += records.length;
    }).observe(document.getElementById('jobs'), { subtree: true, childList: true, attributes: true, characterData: true });
    let last = performance.now();
    requestAnimationFrame(function next() {
      frames.push(performance.now() - last);
      last = performance.now();
      requestAnimationFrame(next);
    });
  });
  const ticks = 20;
  const moves = count; // every job once in two seconds, if the machine is as fast
  const began = performance.now();
  for (let tick = 0; tick < ticks; tick++) {
    for (let n = tick % ticks; n < count; n += ticks) gateway.move(n, { progress: tick + 1 });
    if (tick % 10 === 5) await page.mouse.wheel(0, 2000);
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, began + (tick + 1) * 100 - performance.now())));
  }
  await page.waitForFunction((ticks) => [...document.querySelectorAll('.job progress')].every((bar, i, all) => bar.value === (all.length - 1 - i) % ticks + 1), ticks);
  const { frames, drawings, writes } = await page.evaluate(() => ({ frames, drawings, writes }));
  frames.sort((a, b) => a - b);
  const at = (q) => frames[Math.floor(q * (frames.length - 1))].toFixed(1);
  t.diagnostic(`${frames.length} frames: median ${at(0.5)} ms, 99% ${at(0.99)} ms; ${drawings} drawings, ${(writes / moves).toFixed(1)} writes a move`);
  assert.ok(drawings <= frames.length + 20, `${drawings} drawings in ${frames.length} frames`); // times tick once a second, too
  assert.ok(writes <= 20 * moves, `${writes} writes for ${moves} moves`);
});

variant('it fits both screens', async (t) => {
  const { page } = await open(t, [job(1, done()), job(2, failed()), job(3, { status: 'in_progress', progress: 42 }), job(4), job(5, { ...done(), expires_at: now() - 1 }),
    job(6, { prompt: 'x'.repeat(300) })]);
  await pictures(page, 'live');
  await button(page.locator('.job.completed').last(), /^Remix/).click();
  await pictures(page, 'live-dialog');
});
