// A user makes videos by clicking, and watches them: the page, the gateway and the
// sandbox behind it, nothing invented. The tests tell one story and run in order.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { after, before, test } from 'node:test';
import { launch, picture, screens, variant, visit } from '../../oauth/js/chromium.js';
import { button, issuer, key, line, signedIn } from './gateway.js';

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const card = (page, prompt) => page.locator('.job', { hasText: prompt });

async function create(page, prompt) {
  await page.fill('#prompt', prompt);
  await page.keyboard.press('Control+Enter');
  await card(page, prompt).waitFor();
}

const progress = (page, prompt) => card(page, prompt).locator('progress').evaluate((p) => p.value);

async function moving(page, prompt) {
  const before = await progress(page, prompt);
  await page.waitForFunction(([prompt, before]) => {
    const c = [...document.querySelectorAll('.job')].find((j) => j.textContent.includes(prompt));
    return c?.matches('.in_progress') && c.querySelector('progress').value > before;
  }, [prompt, before]);
}

const finished = (page, prompt) => card(page, prompt).and(page.locator('.completed')).waitFor({ timeout: 300_000 });

async function plays(page, prompt) {
  await button(card(page, prompt), /^Play/).click();
  await page.waitForFunction(() => { const v = document.querySelector('video'); return v && v.currentTime > 0.2 && v.videoWidth > 0; });
  return card(page, prompt).locator('video').evaluate((v) => ({ width: v.videoWidth, height: v.videoHeight, duration: v.duration, focused: document.activeElement === v }));
}

test('create by clicking, watch it move, reload in the middle, play the result', async (t) => {
  const page = await signedIn(t, browser, { viewport: screens.desktop });
  await line(page, 'live');
  await page.waitForFunction(() => document.querySelector('#create [type=submit]').textContent === 'Generate for $0.40'); // which it costs, see below
  await create(page, 'a paper boat [sandbox: job=12s]');
  await moving(page, 'a paper boat');
  await page.reload();
  await line(page, 'live');
  await moving(page, 'a paper boat');
  await finished(page, 'a paper boat');
  await page.waitForFunction(() => document.querySelector('.job img').naturalWidth > 0);
  await page.waitForFunction(() => document.querySelector('.job .cost').textContent === ' · $0.40');
  assert.deepEqual(await plays(page, 'a paper boat'), { width: 1280, height: 720, duration: 4, focused: true });
  await picture(page, 'live-story');
});

test('a finished video is remixed, downloaded and deleted', async (t) => {
  const page = await signedIn(t, browser, { viewport: screens.phone, acceptDownloads: true });
  await line(page, 'live');
  const boat = card(page, 'a paper boat');
  await button(boat, /^Remix/).click();
  await button(page.locator('#remix'), 'Remix for $0.40').waitFor();
  await page.fill('#remix-prompt', 'the same at night [sandbox: job=2s]');
  await button(page.locator('#remix'), 'Remix').click(); // the price stands behind the word
  await finished(page, 'the same at night');
  assert.match(await card(page, 'the same at night').locator('.facts').textContent(), /remix/);
  const [download] = await Promise.all([page.waitForEvent('download'), button(boat, /^Save/).click()]);
  const bytes = await readFile(await download.path());
  assert.equal(bytes.subarray(4, 8).toString(), 'ftyp');
  assert.match(download.suggestedFilename(), /^video_\w+\.mp4$/);
  await button(boat, /^Delete/).click();
  await button(page.locator('#remove'), 'Keep').click();
  assert.equal(await boat.count(), 1);
  await button(boat, /^Delete/).click();
  await button(page.locator('#remove'), 'Delete for good').click();
  await boat.waitFor({ state: 'detached' });
  await page.reload();
  await line(page, 'live');
  assert.equal(await boat.count(), 0);
});

variant('what is refused is said in the form, and the form keeps what was typed', async (t) => {
  const page = await signedIn(t, browser);
  await line(page, 'live');
  await page.fill('#prompt', 'anything');
  await page.fill('#model', 'no-such-model');
  await button(page, 'Generate').click();
  await page.waitForSelector('#refused:not([hidden])');
  assert.match(await page.textContent('#refused'), /no-such-model/);
  assert.equal(await page.inputValue('#prompt'), 'anything');
});

variant('a picture of the wrong size is refused by name', async (t) => {
  const page = await signedIn(t, browser);
  await line(page, 'live');
  await page.fill('#prompt', 'from a picture');
  const png = await page.evaluate(() => { const c = document.createElement('canvas'); c.width = c.height = 8; return c.toDataURL('image/png').split(',')[1]; });
  await page.setInputFiles('#reference', { name: 'small.png', mimeType: 'image/png', buffer: Buffer.from(png, 'base64') });
  await button(page, 'Generate').click();
  await page.waitForSelector('#refused:not([hidden])');
  assert.match(await page.textContent('#refused'), /1280x720/);
});

variant('what blocks a job is on its card', async (t) => {
  const page = await signedIn(t, browser);
  await line(page, 'live');
  await create(page, 'a bad end [sandbox: job=2s fail]');
  await card(page, 'a bad end').and(page.locator('.failed')).waitFor({ timeout: 120_000 });
  assert.match(await card(page, 'a bad end').locator('.problem').textContent(), /failed/);
  await picture(page, 'live-failed');
});

variant('with a key, without signing in, the same can be done', async (t) => {
  const page = await visit(t, browser);
  await page.goto(`${issuer}/live`);
  await page.fill('#key', key);
  await button(page, 'Use this key').click();
  await line(page, 'live');
  await create(page, 'by key [sandbox: job=10s]');
  await moving(page, 'by key');
  await page.reload();
  await line(page, 'live');
  await finished(page, 'by key');
  assert.equal((await plays(page, 'by key')).width, 1280);
  await picture(page, 'live-key');
});

variant('a wrong key is distinguished from a lost connection', async (t) => {
  const page = await visit(t, browser);
  await page.goto(`${issuer}/live`);
  await page.fill('#key', 'sd-wrong');
  await button(page, 'Use this key').click();
  await line(page, 'unknown API key');
});

variant('a browser that goes offline comes back to what happened meanwhile', async (t) => {
  const page = await signedIn(t, browser);
  await line(page, 'live');
  await create(page, 'while away [sandbox: job=4s]');
  await page.context().setOffline(true);
  await line(page, 'connection lost');
  await new Promise((resolve) => setTimeout(resolve, 5000));
  await page.context().setOffline(false);
  await line(page, 'live');
  await finished(page, 'while away');
});

const run = promisify(execFile);
const env = { ...process.env, STAGEDOOR_URL: issuer, STAGEDOOR_KEY: key, TERM: 'xterm' };

test('on a terminal a bar moves, and the file is there in the end', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'stagedoor-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'boat.mp4');
  const { stdout } = await run('script', ['-qec', `stty cols 100 rows 24; '${process.env.STAGEDOOR_BINARY}' videos create 'on a terminal [sandbox: job=3s]' -o '${file}'`, '/dev/null'], { env });
  for (const part of ['░', '█', '100%', 'completed', '$0.40', 'boat.mp4']) assert.ok(stdout.includes(part), `no ${part} in ${stdout}`);
  assert.equal((await readFile(file)).subarray(4, 8).toString(), 'ftyp');
});

test('jobs of commands move on the page, and the other way round', async (t) => {
  const videos = (...args) => run(process.env.STAGEDOOR_BINARY, ['videos', ...args], { env });
  const page = await signedIn(t, browser);
  await line(page, 'live');
  const id = (await videos('create', 'by command [sandbox: job=10s]')).stdout.trim();
  await moving(page, 'by command');
  const { stdout } = await videos('watch', id, '--json');
  const lines = stdout.trim().split('\n').map((l) => JSON.parse(l));
  assert.equal(lines.at(-2).status, 'completed');
  assert.deepEqual(lines.at(-1), { object: 'video.cost', id, cost: 400_000 });
  await finished(page, 'by command');
});
