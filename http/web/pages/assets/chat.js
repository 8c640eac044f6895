// The page /chat: one or two models answer the same conversation, paid by the user who is signed in. The conversation
// lives in this tab. Text of replies reaches the page as text, never as HTML.
import { money, receipt, seconds, stream } from './stream.js';

const $ = (id) => document.getElementById(id);
const root = $('chat');
const headers = { 'x-stagedoor-form': root.dataset.token };
const sides = [{ field: $('model-a'), messages: [] }, { field: $('model-b'), messages: [] }];
let pictures = []; // files of the next message, each with its data URL for the request
let running; // AbortController of the replies that stream
let last = ''; // the last question, for editing

function make(name, className, ...children) {
  const e = document.createElement(name);
  if (className) e.className = className;
  e.append(...children);
  return e;
}

// parameters reads the settings. Its error names the field that is wrong.
function parameters() {
  const all = {};
  for (const [id, name] of [['temperature', 'temperature'], ['top-p', 'top_p'], ['max-tokens', 'max_tokens']]) {
    const { value, validity } = $(id);
    if (!validity.valid) throw new Error(`${name} must be a number in its range.`);
    if (value !== '') all[name] = Number(value);
  }
  const text = $('more').value.trim();
  if (!text) return all;
  let more;
  try { more = JSON.parse(text); } catch (e) { throw new Error(`More parameters must be a JSON object: ${e.message}`); }
  if (typeof more !== 'object' || Array.isArray(more) || more === null) throw new Error('More parameters must be a JSON object.');
  return { ...all, ...more };
}

function bodyFor(side, messages) {
  const system = $('system').value.trim();
  return { model: side.field.value.trim(), messages: system ? [{ role: 'system', content: system }, ...messages] : messages, ...parameters() };
}

// write shows a reply: text, and code between fences with a button that copies it.
function write(said, text) {
  const parts = text.split(/^```[^\n]*\n?/m);
  said.replaceChildren(...parts.map((part, i) => (i % 2 ? code(part) : make('span', '', part))));
}

function code(text) {
  const button = make('button', 'copy', make('span', '', 'Copy'));
  button.type = 'button';
  button.dataset.copy = text;
  return make('div', 'code', make('pre', 'detail', text), button);
}

// answer streams the reply of one side into its card and returns its measures.
async function answer(side, card) {
  const [said, problem] = [card.querySelector('.said'), card.querySelector('.problem')];
  const { messages } = side; // "New chat" gives the side a new list while this reply may still stream
  let text = '';
  let calls = [];
  try {
    const body = bodyFor(side, messages);
    card.querySelector('h2').textContent = body.model;
    const m = await stream('/chat/api/chat/completions', headers, body, (piece, delta) => {
      text += piece;
      for (const c of delta) {
        const call = (calls[c.index] ??= { id: c.id, type: 'function', function: { name: '', arguments: '' } });
        call.function.name += c.function?.name ?? '';
        call.function.arguments += c.function?.arguments ?? '';
      }
      write(said, text);
      if (calls.length) said.append(make('div', 'code', make('pre', 'detail', calls.map((c) => `${c.function.name}(${c.function.arguments})`).join('\n'))));
    }, running.signal);
    measure(card, m);
    return m;
  } catch (e) {
    problem.textContent = e.name === 'AbortError' ? 'Stopped.' : e.message;
    problem.hidden = false;
    calls = []; // their arguments may be cut off
    return undefined;
  } finally {
    said.ariaBusy = 'false';
    remember(messages, text, calls.flat());
  }
}

// remember adds a reply to its conversation. An empty reply takes its question out again, because vendors refuse empty
// messages and two questions in a row.
function remember(messages, text, calls) {
  if (!text && !calls.length) {
    messages.pop();
    return;
  }
  messages.push(calls.length ? { role: 'assistant', content: text || null, tool_calls: calls } : { role: 'assistant', content: text });
  for (const c of calls) messages.push({ role: 'tool', tool_call_id: c.id, content: '(not run on this page)' });
}

function measure(card, m) {
  const items = [[m.first ? seconds(m.first) : '–', 'first token'], [m.rate ? Math.round(m.rate) : '–', 'tokens per second'],
    [m.usage ? `${m.usage.prompt_tokens} → ${m.usage.completion_tokens}` : '–', 'tokens']];
  card.querySelector('.measure').replaceChildren(...items.map(([value, name]) => make('span', '', make('strong', '', String(value)), ` ${name}`)));
  const lost = [m.losses && `Lost in translation: ${m.losses}`, m.degraded && `Structured output was degraded: ${m.degraded}`,
    m.end === 'length' && 'The reply ended at its length limit.'].filter(Boolean);
  card.querySelector('.losses').replaceChildren(...lost.map((l) => make('li', '', l)));
  receipt(`/chat/api/receipts/${encodeURIComponent(m.id)}`, headers).then((r) => {
    card.querySelector('.measure').append(make('span', '', make('strong', '', money(r?.charged))));
    if (r) card.querySelector('.by').textContent = `Served by ${r.provider} as ${r.upstream_model}${r.attempts > 1 ? ` after ${r.attempts} attempts` : ''}. `;
    if (!root.dataset.admin) return;
    const link = make('a', '', 'See the request');
    link.href = `/flow/requests/${encodeURIComponent(m.id)}`;
    card.querySelector('.by').append(link);
  }, () => {});
}

async function send(question) {
  const used = sides.filter((s) => s.field.value.trim());
  try {
    if (!used.length) throw new Error('Choose a model.');
    parameters();
  } catch (e) {
    $('problem').textContent = e.message;
    $('problem').hidden = false;
    return;
  }
  $('problem').hidden = true;
  $('start').hidden = true;
  last = question;
  const content = pictures.length ? [{ type: 'text', text: question }, ...pictures.map(({ url }) => ({ type: 'image_url', image_url: { url } }))] : question;
  for (const s of used) s.messages.push({ role: 'user', content });
  const shown = make('p', 'asked', question);
  for (const { file } of pictures) {
    const img = make('img');
    img.onload = () => URL.revokeObjectURL(img.src);
    // The policy of the page forbids data URLs.
    shown.append(Object.assign(img, { src: URL.createObjectURL(file), alt: file.name }));
  }
  const cards = used.map(() => $('reply').content.firstElementChild.cloneNode(true));
  const turn = make('section', 'turn', shown, make('div', 'answers', ...cards));
  $('talk').append(turn);
  attach([]);
  $('question').value = '';
  running = new AbortController();
  busy(true);
  turn.scrollIntoView({ block: 'end' });
  const measures = await Promise.all(used.map((s, i) => answer(s, cards[i])));
  busy(false);
  running = undefined;
  if (measures.length === 2 && measures.every((m) => m?.first)) {
    const [fast, slow] = measures[0].first <= measures[1].first ? [0, 1] : [1, 0];
    turn.append(make('p', 'verdict', make('strong', '', used[fast].field.value), ` began ${seconds(measures[slow].first - measures[fast].first)} earlier.`));
  }
}

function busy(on) {
  $('send').hidden = on;
  $('stop').hidden = !on;
}

function attach(files) {
  pictures = files;
  $('pictures').textContent = files.length ? `${files.length} picture${files.length > 1 ? 's' : ''} attached` : '';
  $('picture').value = '';
}

$('picture').onchange = async (e) => {
  attach(await Promise.all([...e.target.files].slice(0, 8).map((file) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ file, url: reader.result });
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  }))));
};

$('composer').onsubmit = (e) => {
  e.preventDefault();
  const question = $('question').value.trim();
  if (question && !running) send(question);
};
$('question').onkeydown = (e) => {
  if (e.isComposing) return;
  if (e.key === 'Enter' && !e.shiftKey) {
    e.preventDefault();
    $('composer').requestSubmit();
  } else if (e.key === 'ArrowUp' && !e.target.value && last) {
    e.preventDefault();
    e.target.value = last;
  }
};
document.addEventListener('keydown', (e) => { if (e.key === 'Escape' && !document.querySelector('dialog[open]')) running?.abort(); });
$('stop').onclick = () => running?.abort();
$('new').onclick = () => {
  running?.abort();
  for (const s of sides) s.messages = [];
  for (const turn of $('talk').querySelectorAll('.turn')) turn.remove();
  $('start').hidden = false;
  $('question').focus();
};
$('start').onclick = (e) => { if (e.target.matches('button') && !running) send(e.target.textContent); };

// The request as code. Python has other words for three values; TypeScript reads JSON as it is.
const python = (v, indent = '    ') => {
  if (v === null) return 'None';
  if (typeof v === 'boolean') return v ? 'True' : 'False';
  if (typeof v !== 'object') return JSON.stringify(v);
  const next = `${indent}    `;
  const items = Array.isArray(v) ? v.map((i) => next + python(i, next)) : Object.entries(v).map(([k, i]) => `${next}${JSON.stringify(k)}: ${python(i, next)}`);
  const [open, close] = Array.isArray(v) ? '[]' : '{}';
  return items.length ? `${open}\n${items.join(',\n')},\n${indent}${close}` : open + close;
};

function asCode(body) {
  const { address } = root.dataset;
  const json = JSON.stringify(body, null, 2);
  return {
    curl: `curl ${address}/v1/chat/completions \\\n  -H 'Authorization: Bearer YOUR_KEY' \\\n  -H 'Content-Type: application/json' \\\n  -d '${json.replaceAll("'", "'\\''")}'`,
    python: `# pip install openai\nfrom openai import OpenAI\n\nclient = OpenAI(base_url="${address}/v1", api_key="YOUR_KEY")\nreply = client.chat.completions.create(\n${Object.entries(body).map(([k, v]) => `    ${k}=${python(v)},\n`).join('')})\nprint(reply.choices[0].message.content)`,
    typescript: `// npm install openai\nimport OpenAI from 'openai';\n\nconst client = new OpenAI({ baseURL: '${address}/v1', apiKey: 'YOUR_KEY' });\nconst reply = await client.chat.completions.create(${json});\nconsole.log(reply.choices[0].message.content);`,
  };
}

$('code-open').onclick = () => {
  const side = sides.find((s) => s.field.value.trim()) ?? sides[0];
  const question = $('question').value.trim() || (side.messages.length ? '' : 'Hello');
  const messages = question ? [...side.messages, { role: 'user', content: question }] : side.messages.slice(0, side.messages.findLastIndex((m) => m.role === 'user') + 1);
  try {
    for (const [name, text] of Object.entries(asCode(bodyFor(side, messages)))) $(`code-${name}`).textContent = text;
    $('code').showModal();
  } catch (e) {
    $('problem').textContent = e.message;
    $('problem').hidden = false;
  }
};
$('code-close').onclick = () => $('code').close();
