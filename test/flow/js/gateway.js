// The gateway under test, started by ../run.sh: requests that are under way there, and
// a browser that is signed in.
import assert from 'node:assert/strict';
import { issuer, key, signedIn } from '../../oauth/js/signedin.js';

export { issuer };

// ask begins a stream. done resolves to its { id, text }.
export async function ask(t, play, model = 'm1') {
  const leave = new AbortController();
  t.after(() => leave.abort());
  const sent = fetch(`${issuer}/v1/chat/completions`, {
    method: 'POST', signal: leave.signal,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-sandbox': play },
    body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'hello' }] }),
  });
  const done = sent.then(async (r) => ({ id: r.headers.get('x-request-id'), text: await r.text() })).catch((e) => ({ text: String(e) }));
  return { sent, done, leave: () => leave.abort() };
}

// film begins a video job and returns its id.
export async function film(prompt) {
  const r = await fetch(`${issuer}/v1/videos`, {
    method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'video-2', prompt, seconds: '4' }),
  });
  assert.equal(r.status, 200);
  return (await r.json()).id;
}

// open opens a page of who administers. before prepares it.
export async function open(t, browser, path, options = {}, before = async () => {}) {
  const page = await signedIn(t, browser, path, options, before);
  await page.locator('#line', { hasText: /^live$/ }).waitFor();
  return page;
}
