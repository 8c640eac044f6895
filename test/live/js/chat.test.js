// A user asks two models at once, reads what they took and cost, and copies the request as code.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, pictures, variant } from '../../oauth/js/chromium.js';
import { button, issuer } from './gateway.js';
import { signedIn } from '../../oauth/js/signedin.js';

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const open = (t, options) => signedIn(t, browser, '/chat', options);

async function ask(page, question) {
  await page.fill('#question', question);
  await page.keyboard.press('Enter');
}

// beside lets a second model answer, too.
async function beside(page, model) {
  await page.check('#both');
  await page.fill('#model-b', model);
}

const measured = (page, n) => page.waitForFunction((n) => [...document.querySelectorAll('.answer .measure')].filter((m) => m.textContent.includes('$')).length === n, n);

test('two models answer side by side, with their first token, speed, tokens and cost', async (t) => {
  const page = await open(t);
  assert.equal(await page.inputValue('#model-a'), 'small');
  await beside(page, 'large');
  await ask(page, 'is <b>this</b> text?');
  await measured(page, 2);
  assert.deepEqual(await page.locator('.answer h2').allTextContents(), ['small', 'large']);
  for (const text of await page.locator('.answer').allTextContents()) {
    assert.match(text, /is <b>this<\/b> text\?/);
    assert.match(text, /\d m?s first token\d+ tok\/s\d+ → \d+ tokens\$0\.\d+ costNothing lostServed by sandbox as (small|large) · View request/);
  }
  assert.match(await page.getAttribute('.race', 'aria-label'), /^small: first token after [\d.]+ m?s, finished after \d.* large: /);
  assert.match(await page.textContent('#spent'), /^This chat \$0\.\d+ · \$\d+\.\d\d left$/);
  assert.deepEqual(await page.locator('.price').allTextContents(), ['$30.00 in, $60.00 out per 1M', '$300.00 in, $600.00 out per 1M']);
  assert.match(await page.textContent('.verdict'), /^([AB] was [\d.]+× as fast|Both took the same time)( and |, A was )[\d.]+× cheaper\.$/);
  assert.match(await page.locator('.by a').first().getAttribute('href'), /^\/requests\?q=id%3Areq_\w+&range=30d$/);
  await ask(page, 'and this?');
  await measured(page, 4);
  await page.keyboard.press('ArrowUp');
  assert.equal(await page.inputValue('#question'), 'and this?');
  await button(page, 'New chat').click();
  assert.equal(await page.locator('.turn').count(), 0);
});

// kept waits until the chat that is open has an address, which it has once it is kept.
const kept = (page) => page.waitForURL(/chat\?chat=conv_/);
const chats = (page) => page.locator('#chats button');

test('a chat with two models is found again in another browser, goes on there, and is renamed and deleted', async (t) => {
  const page = await open(t);
  await beside(page, 'large');
  await page.setInputFiles('#picture', [{ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('<b>note</b>') }, { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(png, 'base64') }]);
  await page.locator('#pictures', { hasText: '2 files attached' }).waitFor();
  await ask(page, 'keep <i>this</i>');
  await measured(page, 2);
  await kept(page);
  const answers = await page.locator('.said').allTextContents();
  const other = await open(t);
  const sent = asked(other);
  await chats(other).filter({ hasText: 'keep <i>this</i>' }).click();
  await measured(other, 2); // what was charged is found again, too
  assert.deepEqual(await other.locator('.said').allTextContents(), answers);
  assert.deepEqual(await other.locator('.answer h2').allTextContents(), ['small', 'large']);
  assert.equal(await other.locator('.asked .tag').textContent(), 'notes.txt');
  await other.waitForFunction(() => document.querySelector('.asked img')?.naturalWidth === 1);
  await ask(other, 'go on');
  await measured(other, 4);
  assert.deepEqual(sent.map((s) => s.messages.map((m) => m.role).join()), Array(2).fill('user,assistant,user'));
  assert.equal(sent[0].messages[0].content[2].image_url.url, `data:image/png;base64,${png}`);
  await button(other, 'Rename').click();
  await other.fill('#title', 'my <b>chat</b>');
  await button(other.locator('#rename'), 'Rename').click();
  await chats(other).filter({ hasText: 'my <b>chat</b>' }).waitFor();
  await page.goto(other.url()); // its address opens it
  await measured(page, 4);
  assert.equal(await page.locator('.turn').count(), 2);
  await button(page, 'Delete').click();
  await button(page.locator('#remove'), 'Delete for good').click();
  await page.waitForURL(/chat$/);
  await page.reload();
  await page.locator('#past-none:visible').or(chats(page).first()).waitFor();
  assert.equal(await chats(page).filter({ hasText: 'my <b>chat</b>' }).count(), 0);
});

variant('a chat is not kept if its user does not want it', async (t) => {
  const page = await open(t);
  const changes = [];
  page.on('request', (r) => { if (r.url().includes('/conversations') && r.method() !== 'GET') changes.push(r.url()); });
  await page.uncheck('#keep');
  await ask(page, 'keep nothing of this');
  await measured(page, 1);
  assert.deepEqual(changes, []);
});

const saved = (page) => page.waitForResponse((r) => /\/items$/.test(r.url()) && r.request().method() === 'POST');

// hold keeps back the first request of a page to a URL, and returns what lets it go on or refuses it.
async function hold(page, url) {
  const held = [];
  await page.route(url, (route) => (held.push(route) > 1 ? route.continue() : undefined));
  return { goOn: () => held[0].continue(), refuse: () => held[0].abort() };
}

// again opens the address of a page, and returns the questions and answers that were kept.
async function again(page) {
  await page.reload();
  await page.locator('.turn').first().waitFor();
  const turns = (all) => all.map((t) => [...t.querySelectorAll('.asked, .said')].map((e) => e.textContent.trim()));
  return page.locator('.turn').evaluateAll(turns);
}

variant('a turn that ends while its user does not want the chat kept is not kept', async (t) => {
  const page = await open(t);
  for (const [i, question] of ['first', 'secret', 'third'].entries()) {
    const keep = i !== 1;
    await page.setChecked('#keep', keep);
    const done = keep && saved(page);
    await ask(page, question);
    await measured(page, i + 1);
    await done;
  }
  assert.deepEqual((await again(page)).map(([asked]) => asked), ['first', 'third']);
});

variant('a chat is kept once and whole if replies of its saves are lost', async (t) => {
  const page = await open(t);
  await chats(page).first().waitFor();
  const listed = await chats(page).count();
  const lost = [/conversations$/, /conversations\/[^/]+$/, /items$/, /items$/];
  await page.route(/chat\/api\/conversations/, async (route) => {
    if (route.request().method() !== 'POST' || !lost[0]?.test(route.request().url())) return route.continue();
    lost.shift();
    await route.fetch();
    return route.abort();
  });
  for (const question of ['one', 'two', 'three']) {
    await ask(page, question);
    await page.locator('#problem', { hasText: 'not kept' }).waitFor();
  }
  await ask(page, 'four [sandbox: pace=5, tokens=1000]'); // a reply that was stopped has no id of a request
  await page.locator('.turn').nth(3).locator('.said', { hasText: 'four' }).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('#problem', { hasText: 'not kept' }).waitFor();
  const done = saved(page);
  await ask(page, 'five');
  await done;
  assert.deepEqual(lost, []);
  const shown = await again(page);
  assert.deepEqual(shown.map(([asked]) => asked.split(' ')[0]), ['one', 'two', 'three', 'four', 'five']);
  for (const [asked, ...answers] of shown) {
    assert.equal(answers.length, 1, asked);
    assert.match(answers[0], new RegExp(asked.slice(0, 3)));
  }
  assert.equal(await chats(page).count(), Math.min(listed + 1, 50));
});

variant('a slow save keeps each answer below its own question', async (t) => {
  const page = await open(t);
  const slow = await hold(page, /items$/);
  await ask(page, 'alpha');
  await measured(page, 1);
  await ask(page, 'beta');
  await measured(page, 2);
  const gamma = await hold(page, /chat\/completions$/);
  await ask(page, 'gamma');
  await page.locator('.turn').nth(2).waitFor();
  let saves = 0;
  page.on('response', (r) => { saves += /items$/.test(r.url()) ? 1 : 0; });
  const late = page.waitForResponse((r) => /items$/.test(r.url()) && saves > 1);
  slow.goOn();
  await late;
  gamma.refuse();
  await page.locator('.turn').nth(2).locator('.problem:visible').waitFor();
  const done = saved(page);
  await ask(page, 'delta');
  await done;
  const shown = await again(page);
  assert.deepEqual(shown.map(([asked]) => asked), ['alpha', 'beta', 'delta']);
  for (const [asked, answer] of shown) assert.match(answer, new RegExp(asked));
});

variant('a chat opens with its own system text, and the one that was chosen last is open', async (t) => {
  const page = await open(t);
  await page.getByText('Instructions', { exact: true }).click();
  for (const [system, question] of [['Answer as a pirate.', 'piracy'], ['', 'plain']]) {
    await button(page, 'New chat').click();
    await page.fill('#system', system);
    const done = saved(page);
    await ask(page, question);
    await done;
  }
  const chat = (title) => chats(page).filter({ hasText: title }).first();
  const opens = (title) => page.locator('#chats [aria-current=true]', { hasText: title }).waitFor();
  await chat('piracy').click();
  await opens('piracy');
  assert.equal(await page.inputValue('#system'), 'Answer as a pirate.');
  const address = page.url();
  await chat('plain').click();
  await opens('plain');
  assert.equal(await page.inputValue('#system'), '');
  await chat('piracy').click();
  await opens('piracy');
  await button(page, 'New chat').click();
  assert.equal(await page.inputValue('#system'), '');

  const slow = await hold(page, new RegExp(`${address.split('=')[1]}/items`));
  const late = page.waitForResponse(new RegExp(`${address.split('=')[1]}/items`));
  await chat('piracy').click();
  await chat('plain').click();
  await opens('plain');
  slow.goOn();
  await (await late).finished();
  assert.equal(await page.locator('.asked').textContent(), 'plain');
});

variant('a question that is asked before the wanted chat is there is answered', async (t) => {
  const page = await open(t);
  await ask(page, 'wanted');
  await kept(page);
  const slow = await hold(page, /conversations\?after=/);
  await page.reload();
  await ask(page, 'early [sandbox: pace=20, tokens=20]');
  await page.locator('.said', { hasText: /./ }).waitFor();
  slow.goOn();
  await chats(page).filter({ hasText: 'wanted' }).first().waitFor();
  await measured(page, 1);
  assert.match(await page.locator('.asked').textContent(), /^early/);
  assert.equal(await page.locator('.answer .problem:visible').count(), 0);
});

variant('a question stays in its field if a part of the page cannot be loaded', async (t) => {
  const page = await open(t);
  await page.route(/chatparts/, (route) => route.abort(), { times: 1 });
  await ask(page, 'still here');
  await page.locator('#problem', { hasText: 'cannot be loaded' }).waitFor();
  assert.equal(await page.inputValue('#question'), 'still here');
  await button(page, 'Ask').click();
  await measured(page, 1);
});

variant('a chat is deleted only if the gateway says so', async (t) => {
  const page = await open(t);
  await ask(page, 'keep me');
  await kept(page);
  const html = { status: 404, contentType: 'text/html', body: '<html>' };
  await page.route(/conversations\/[^/]+$/, (route) => route.fulfill(html), { times: 1 });
  await button(page, 'Delete').click();
  await button(page.locator('#remove'), 'Delete for good').click();
  await page.locator('#remove .problem', { hasText: 'status 404' }).waitFor();
  assert.equal((await again(page))[0][0], 'keep me');
});

test('settings are sent, and a mistake in them is said before anything is sent', async (t) => {
  const page = await open(t);
  const sent = asked(page);
  await page.getByText('Instructions', { exact: true }).click();
  await page.fill('#system', 'Be brief.');
  await page.fill('#temperature', '0.5');
  assert.equal(await page.textContent('#set'), 'temp 0.5 · instructions');
  await page.getByText('Tools', { exact: true }).click(); // closes the other settings
  await page.locator('#system').waitFor({ state: 'hidden' });
  await page.fill('#more', '{"tools": ');
  await ask(page, 'hello');
  await page.locator('#problem', { hasText: 'must be a JSON object' }).waitFor();
  assert.deepEqual(sent, []);
  await page.fill('#more', '{"seed": 7}');
  await ask(page, 'hello');
  await measured(page, 1);
  assert.deepEqual({ ...sent[0], stream_options: undefined }, { model: 'small', temperature: 0.5, seed: 7, stream: true, stream_options: undefined,
    messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'hello' }] });
});

test('a refusal stands in its answer while the other model goes on, and Escape stops', async (t) => {
  const page = await open(t);
  await beside(page, 'no-such-model');
  await ask(page, 'hello');
  await measured(page, 1);
  assert.match(await page.locator('.answer .problem:visible').textContent(), /no-such-model/);
  await page.uncheck('#both');
  await ask(page, 'slowly [sandbox: pace=5, tokens=1000]');
  await page.locator('.turn').nth(1).locator('.said', { hasText: /./ }).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.answer .problem', { hasText: 'Stopped.' }).waitFor();
  await page.locator('#send').waitFor();
});

// asked returns the list to which each body of a request of the page is added.
function asked(page) {
  const sent = [];
  page.on('request', (r) => { if (r.url().endsWith('/chat/api/chat/completions')) sent.push(r.postDataJSON()); });
  return sent;
}

variant('a new chat during a reply begins with nothing of the old one', async (t) => {
  const page = await open(t);
  const sent = asked(page);
  await ask(page, 'old question [sandbox: pace=5, tokens=1000]');
  await page.locator('.said', { hasText: /./ }).waitFor();
  await button(page, 'New chat').click();
  await page.locator('#send').waitFor();
  await ask(page, 'new question');
  await measured(page, 1);
  assert.deepEqual(sent[1].messages, [{ role: 'user', content: 'new question' }]);
});

variant('a question without an answer is not sent again', async (t) => {
  const page = await open(t);
  const sent = asked(page);
  await page.fill('#model-a', 'no-such-model');
  await ask(page, 'refused question');
  await page.locator('.answer .problem', { hasText: 'no-such-model' }).waitFor();
  await page.locator('#send').waitFor();
  await page.fill('#model-a', 'small');
  await ask(page, 'answered question');
  await measured(page, 1);
  assert.deepEqual(sent[1].messages, [{ role: 'user', content: 'answered question' }]);
});

variant('an attached picture is sent and shown', async (t) => {
  const page = await open(t);
  const sent = asked(page);
  await page.setInputFiles('#picture', { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(png, 'base64') });
  await page.locator('#pictures', { hasText: '1 file attached' }).waitFor();
  await ask(page, 'what is it?');
  await page.waitForFunction(() => document.querySelector('.asked img')?.naturalWidth === 1);
  assert.equal(sent[0].messages[0].content[1].image_url.url, `data:image/png;base64,${png}`);
  await measured(page, 1);
});

test('the request is shown as code in three languages', async (t) => {
  const page = await open(t);
  await page.getByText('Tools', { exact: true }).click();
  await page.fill('#more', '{"parallel_tool_calls": true}');
  await page.fill('#question', "it's here");
  await button(page, 'Code').click();
  await page.locator('#code[open]').waitFor();
  assert.match(await page.textContent('#code-curl'), new RegExp(`^curl ${issuer}/v1/chat/completions[^]*it'\\\\''s here`));
  assert.match(await page.textContent('#code-python'), /"content": "it's here",[^]*parallel_tool_calls=True,/);
  assert.match(await page.textContent('#code-typescript'), /"parallel_tool_calls": true/);
  await page.keyboard.press('Escape');
  await page.locator('#code').waitFor({ state: 'hidden' });
});

test('a model is found in the list and tried', async (t) => {
  const page = await open(t);
  await page.getByRole('link', { name: 'Models', exact: true }).click();
  await page.waitForURL(/models/);
  await page.keyboard.press('/');
  await page.locator('input[type=search]:focus').waitFor();
  await page.keyboard.type('larg');
  await page.keyboard.press('Enter');
  await page.waitForURL(/q=larg/);
  assert.equal(await page.locator('tbody tr').count(), 1);
  await page.getByRole('link', { name: 'large', exact: true }).click();
  await page.waitForURL(/models\/large/);
  await page.getByText('Claude Code', { exact: true }).click();
  assert.match(await page.locator('.panel:visible').innerText(), /ANTHROPIC_BASE_URL/);
  await page.getByRole('link', { name: 'Try it' }).click();
  await page.waitForURL(/chat/);
  assert.equal(await page.inputValue('#model-a'), 'large');
});

variant('models and chat fit both screens', async (t) => {
  const page = await open(t);
  await page.goto(`${issuer}/account/models`);
  await pictures(page, 'models');
  await page.goto(`${issuer}/account/models/large`);
  await pictures(page, 'model');
  await page.goto(`${issuer}/chat`);
  await pictures(page, 'chat-empty');
  await beside(page, 'large');
  await ask(page, 'What is a ghost light for?');
  await measured(page, 2);
  await pictures(page, 'chat');
});
