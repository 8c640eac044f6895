// The page at /: asks the gateway in the browser's own name, with the key that the page shows, and measures the reply.
// Text of replies reaches the page as text, never as HTML.
const form = document.getElementById('ask');
const key = document.getElementById('key')?.textContent;
const $ = (id) => document.getElementById(id);
const figure = (name, text) => { $('measure').querySelector(`[data-figure="${name}"]`).textContent = text; };
const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`);

// events yields the data of server-sent events until the last one.
async function* events(body) {
  let text = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const all = text.split('\n\n');
    text = all.pop();
    for (const event of all) {
      const data = event.split('\n').filter((l) => l.startsWith('data:')).map((l) => l.slice(5).trim()).join('\n');
      if (data === '[DONE]') return;
      if (data) yield JSON.parse(data);
    }
  }
}

// cost says what the request was charged. A request without a price has no receipt.
async function cost(id) {
  const r = await fetch(`/v1/receipts/${encodeURIComponent(id)}`, { headers: { authorization: `Bearer ${key}` } });
  const micros = r.ok ? (await r.json()).charged : undefined;
  return Number.isFinite(micros) && micros > 0 ? `$${(micros / 1e6).toFixed(6).replace(/(\.\d\d\d*?)0+$/, '$1')}` : 'no charge';
}

async function ask(question, model) {
  const from = performance.now();
  const reply = await fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, stream: true, stream_options: { include_usage: true }, messages: [{ role: 'user', content: question }] }),
  });
  if (!reply.ok) throw new Error((await reply.json()).error?.message ?? `status ${reply.status}`);
  let first;
  let usage;
  for await (const chunk of events(reply.body)) {
    if (chunk.error) throw new Error(chunk.error.message);
    const text = chunk.choices?.[0]?.delta?.content;
    usage = chunk.usage ?? usage;
    if (!text) continue;
    first ??= performance.now();
    $('answer').append(text);
  }
  const took = performance.now() - (first ?? from);
  figure('first', first ? seconds(first - from) : 'none');
  figure('rate', usage && took > 0 ? String(Math.round(usage.completion_tokens / (took / 1000))) : '–');
  figure('tokens', usage ? `${usage.prompt_tokens} → ${usage.completion_tokens}` : '–');
  figure('cost', await cost(reply.headers.get('x-request-id')));
  $('measure').hidden = false;
}

form?.addEventListener('submit', async (event) => {
  event.preventDefault();
  const button = form.querySelector('button[type=submit]');
  if (button.disabled) return;
  button.disabled = true;
  $('answer').replaceChildren();
  $('answer').ariaBusy = 'true';
  $('ask-problem').hidden = true;
  $('measure').hidden = true;
  try {
    await ask($('question').value, $('model').value);
  } catch (problem) {
    $('ask-problem').textContent = problem.message;
    $('ask-problem').hidden = false;
  } finally {
    $('answer').ariaBusy = 'false';
    button.disabled = false;
  }
});
