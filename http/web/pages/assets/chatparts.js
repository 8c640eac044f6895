// Parts of the page /chat that it loads when they are needed first. None of them knows which chat is open.
import { blobOf, image, message, urlOf, words } from './kept.js';
import { make } from './shell.js';
import { money, receipt, seconds, stream } from './stream.js';

export { money };

const $ = (id) => document.getElementById(id);

// write shows a reply: text, and code between fences with a button that copies it.
export function write(said, text) {
  const parts = text.split(/^```[^\n]*\n?/m);
  said.replaceChildren(...parts.map((part, i) => (i % 2 ? code(part) : make('span', '', part))));
}

function code(text) {
  const button = make('button', 'copy', make('span', '', 'Copy'));
  button.type = 'button';
  button.dataset.copy = text;
  return make('div', 'code', make('pre', 'detail', text), button);
}

// calledAs shows calls of tools.
export const calledAs = (calls) => make('div', 'code', make('pre', 'detail', calls.map((c) => `${c.function.name}(${c.function.arguments})`).join('\n')));

// measure writes what a reply took below it, and what was lost.
export function measure(card, m) {
  const items = [[m.first ? seconds(m.first) : '–', 'first token'], [m.rate ? Math.round(m.rate) : '–', 'tok/s'],
    [m.usage ? `${m.usage.prompt_tokens} → ${m.usage.completion_tokens}` : '–', 'tokens']];
  card.querySelector('.measure').replaceChildren(...items.map(([value, name]) => figure(value, name)));
  const lost = m.losses?.split(',').map((l) => l.trim()).filter(Boolean) ?? [];
  const found = [m.degraded && ['Structured output degraded', `The reply did not come from the provider’s own structured output: ${m.degraded}.`],
    lost.length && [`${lost.length} ${lost.length === 1 ? 'loss' : 'losses'}`, ...lost.map((l) => `${l} was requested, but the provider’s API cannot express it, so it was dropped.`)],
    m.end === 'length' && ['Length limit', 'The reply ended at its length limit.']].filter(Boolean);
  card.querySelector('.nothing').hidden = found.length > 0;
  card.querySelector('.loss').hidden = !found.length;
  card.querySelector('.loss summary').replaceChildren(...found.map(([name]) => make('span', 'tag warm', name)));
  card.querySelector('.losses').replaceChildren(...found.flatMap(([, ...texts]) => texts).map((l) => make('li', '', l)));
}

const figure = (value, name) => make('span', '', make('strong', '', String(value)), ` ${name}`);

// cost adds what a reply cost to its measures.
export const cost = (card, charged) => card.querySelector('.measure').append(figure(money(charged), charged > 0 ? 'cost' : ''));

// parameters reads the settings. Its error names the field that is wrong.
export function parameters() {
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

export function bodyFor(side, messages) {
  const system = $('system').value.trim();
  return { model: side.field.value.trim(), messages: system ? [{ role: 'system', content: system }, ...messages] : messages, ...parameters() };
}

const formHeaders = (root) => ({ 'x-stagedoor-form': root.dataset.token });

// answer streams the reply of one side into its card and returns its measures, or nothing if there is no whole reply.
// The id of the request is noted for what the side remembers.
export async function answer(side, card, root, requests, signal) {
  const [said, problem] = [card.querySelector('.said'), card.querySelector('.problem')];
  const { messages } = side; // "New chat" gives the side a new list while this reply may still stream
  let text = '';
  let calls = [];
  let id;
  try {
    const body = bodyFor(side, messages);
    card.querySelector('h2').textContent = body.model;
    const m = await stream('/chat/api/chat/completions', formHeaders(root), body, (piece, delta) => {
      text += piece;
      for (const c of delta) {
        const call = (calls[c.index] ??= { id: c.id, type: 'function', function: { name: '', arguments: '' } });
        call.function.name += c.function?.name ?? '';
        call.function.arguments += c.function?.arguments ?? '';
      }
      write(said, text);
      if (calls.length) said.append(calledAs(calls));
    }, signal);
    id = m.id;
    measure(card, m);
    return m;
  } catch (e) {
    problem.textContent = e.name === 'AbortError' ? 'Stopped.' : e.message;
    problem.hidden = false;
    calls = []; // their arguments may be cut off
    return undefined;
  } finally {
    said.ariaBusy = 'false';
    remember(messages, text, calls.flat(), requests, id);
  }
}

// remember adds a reply to its conversation. An empty reply takes its question out again, because vendors refuse empty
// messages and two questions in a row.
function remember(messages, text, calls, requests, id) {
  if (!text && !calls.length) {
    messages.pop();
    return;
  }
  const said = { role: 'assistant', content: text || null, ...(calls.length ? { tool_calls: calls } : {}) };
  if (id) requests.set(said, id);
  messages.push(said);
  for (const c of calls) messages.push({ role: 'tool', tool_call_id: c.id, content: '(not run on this page)' });
}

// paid says which provider served a request, and returns what it cost.
export async function paid(card, id, root, waits) {
  const r = await receipt(`/chat/api/receipts/${encodeURIComponent(id)}`, formHeaders(root), waits);
  if (r) card.querySelector('.by').textContent = `Served by ${r.provider} as ${r.upstream_model}${r.attempts > 1 ? ` after ${r.attempts} attempts` : ''} · `;
  const link = make('a', '', 'View request');
  link.href = root.dataset.admin ? `/flow/requests/${encodeURIComponent(id)}` : `/requests?${new URLSearchParams({ q: `id:${id}`, range: '30d' })}`;
  card.querySelector('.by').append(link);
  return r?.charged;
}

// race draws the times of two answers on one scale, until the first token and until the end.
export function race(names, measures) {
  const longest = Math.max(...measures.map((m) => m.took));
  const rows = measures.flatMap((m, i) => {
    const bars = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    for (const [className, from, to] of [['bg', 0, longest], ['fw', 0, m.first], ['fr', m.first, m.took]]) {
      const bar = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
      for (const [name, value] of Object.entries({ class: className, x: `${100 * from / longest}%`, width: `${100 * (to - from) / longest}%`, height: 10, rx: 2 })) bar.setAttribute(name, value);
      bars.append(bar);
    }
    return [make('span', 'lbl', 'AB'[i]), bars, make('span', 'tm', seconds(m.took))];
  });
  const drawn = make('div', 'race', ...rows);
  drawn.role = 'img';
  drawn.ariaLabel = measures.map((m, i) => `${names[i]}: first token after ${seconds(m.first)}, finished after ${seconds(m.took)}.`).join(' ');
  return drawn;
}

// times writes how much larger b is than a, or nothing if both are nearly the same.
const times = (a, b) => (a > 0 && b / a >= 1.05 ? `${(b / a).toFixed(b / a < 9.95 ? 1 : 0)}×` : '');

// verdict says which of two answers was faster and which was cheaper. Costs are undefined until they are known.
export function verdict(cards, measures, costs) {
  const best = (values, at) => { // marks the smaller value of two figures and returns its letter and how much smaller it is
    const i = values[0] <= values[1] ? 0 : 1;
    const by = times(values[i], values[1 - i]);
    if (by) cards[i].querySelector('.measure').children[at]?.classList.add('best');
    return by && ['AB'[i], by];
  };
  best(measures.map((m) => m.first), 0);
  if (measures.every((m) => m.rate)) best(measures.map((m) => 1 / m.rate), 1);
  const fast = best(measures.map((m) => m.took), -1);
  const cheap = costs.every((c) => c > 0) && best(costs, 3);
  const strong = (text) => make('strong', '', text);
  const faster = fast ? [`${fast[0]} was `, strong(fast[1]), ' as fast'] : ['Both took the same time'];
  const cheaper = cheap ? [fast && fast[0] === cheap[0] ? ' and ' : `, ${cheap[0]} was `, strong(cheap[1]), ' cheaper'] : [];
  return make('p', 'verdict', ...faster, ...cheaper, '.');
}

// partOf returns a file as a part of a message: pictures and PDF files as themselves, and every other one as text,
// which each model reads.
export async function partOf(file) {
  if (file.type.startsWith('image/')) return { type: 'image_url', image_url: { url: await urlOf(file) } };
  if (file.type === 'application/pdf') return { type: 'file', file: { filename: file.name, file_data: await urlOf(file) } };
  return { type: 'text', text: `${file.name}:\n\`\`\`\n${await file.text()}\n\`\`\`` };
}

// newID returns an id for an item. An id that its sender chose shows whether an item is stored, if the reply was lost.
const newID = () => `msg_${crypto.getRandomValues(new Uint32Array(4)).join('')}`;

// itemsOf returns a message as items of a conversation. An answer has the id of its request in its own.
const itemsOf = (m, request) => bare(m, request).map((item) => ({ id: newID(), ...item }));

function bare(m, request) {
  const parts = typeof m.content === 'string' ? [{ text: m.content }] : m.content ?? [];
  switch (m.role) {
    case 'user': return [message('user', ...parts.map((p) => (p.image_url ? image(p.image_url.url) : p.file ? { type: 'input_file', ...p.file } : words(p.text))))];
    case 'tool': return [{ type: 'function_call_output', call_id: m.tool_call_id, output: m.content }];
  }
  const id = request ? { id: `msg_${request}` } : {};
  return [...(m.content ? [{ ...message('assistant', { type: 'output_text', text: m.content }), ...id }] : []),
    ...(m.tool_calls ?? []).map((c) => ({ type: 'function_call', call_id: c.id, ...c.function }))];
}

// messagesOf is the reverse of itemsOf. It calls made with each answer and the id of its request, and instructed with
// the system text.
export function messagesOf(items, made, instructed) {
  const messages = [];
  for (const it of items) {
    const text = (it.content ?? []).map((p) => p.text ?? '').join('');
    if (it.role === 'user') {
      const parts = it.content.map((p) => (p.image_url ? { type: 'image_url', image_url: { url: p.image_url } } : p.file_data ? { type: 'file', file: { filename: p.filename, file_data: p.file_data } } : { type: 'text', text: p.text }));
      messages.push({ role: 'user', content: parts.length === 1 && parts[0].text !== undefined ? text : parts });
    } else if (it.role === 'assistant') {
      const said = { role: 'assistant', content: text };
      if (it.id.startsWith('msg_req_')) made(said, it.id.slice(4));
      messages.push(said);
    } else if (it.role) {
      instructed(text);
    } else if (it.type === 'function_call') {
      if (messages.at(-1)?.role !== 'assistant') messages.push({ role: 'assistant', content: null });
      (messages.at(-1).tool_calls ??= []).push({ id: it.call_id, type: 'function', function: { name: it.name, arguments: it.arguments } });
    } else if (it.type === 'function_call_output') messages.push({ role: 'tool', tool_call_id: it.call_id, content: it.output });
  }
  return messages;
}

// asked shows a question with its files.
export function asked(content) {
  const parts = typeof content === 'string' ? [{ text: content }] : content;
  const shown = make('div', 'asked', parts[0].text ?? '');
  for (const { text, image_url: picture, file } of parts.slice(1)) {
    const blob = picture && blobOf(picture.url);
    if (!blob) {
      shown.append(make('span', 'tag', file?.filename ?? text?.split(':\n')[0] ?? 'a file'));
      continue;
    }
    const img = make('img');
    img.onload = () => URL.revokeObjectURL(img.src);
    shown.append(Object.assign(img, { src: URL.createObjectURL(blob), alt: 'attached picture' }));
  }
  return shown;
}

// queue adds the items of a turn to the unkept ones, if its user wants it kept. It is called when the turn has ended,
// because a question without an answer is taken out again.
export function queue(sides, requests, wanted) {
  for (const side of sides) {
    if (wanted) side.unkept.push(...side.messages.slice(side.seen).flatMap((m) => itemsOf(m, requests.get(m))));
    side.seen = side.messages.length;
  }
}

// store keeps the unkept items of a chat in its conversations: that of its first model, which the list shows, and that
// of its second one. Each begins empty and in no list, so that a reply that is lost leaves nothing which is shown. It
// calls listed when the list has the chat.
export async function store(kept, chat, system, listed) {
  const [a, b] = chat.sides;
  const [first, second] = (chat.id ? a.id === chat.id : a.unkept.length) ? [a, b] : [b, a];
  for (const side of [second, first]) {
    if (!side.unkept.length || side.id) continue;
    side.id = await kept.create({ page: 'chat-second' });
    if (system) side.unkept.unshift({ id: newID(), ...message('system', words(system)) });
  }
  if (!first.id) return;
  const more = {};
  if (!chat.id) {
    const [{ text }] = first.unkept.find((it) => it.role === 'user').content;
    Object.assign(more, { title: text.slice(0, 100), model: first.field.value.trim() });
  }
  if (second.id && chat.metadata?.second !== second.id) {
    Object.assign(more, { second: second.id, second_model: second.field.value.trim() });
  }
  if (Object.keys(more).length) {
    await kept.describe(first.id, { ...chat.metadata, ...more });
    chat.metadata = Object.assign(chat.metadata ?? {}, more); // the list has the same object
  }
  if (!chat.id) {
    chat.id = first.id;
    listed();
  }
  for (const side of [second, first]) await add(kept, side);
}

// add keeps the unkept items of one side. If the reply of an earlier try was lost, the newest items of the conversation
// show what it stored: a try stores all of its items or none.
async function add(kept, side) {
  const { unkept } = side;
  if (side.unsure) {
    const { data } = await kept.items(side.id, { limit: 20, order: 'desc', include: '' });
    unkept.splice(0, 1 + unkept.findLastIndex((it) => data.some(({ id }) => id === it.id)));
    side.unsure = false;
  }
  const items = [...unkept]; // more may wait when the reply comes
  if (!items.length) return;
  side.unsure = true;
  await kept.add(side.id, items);
  side.unsure = false;
  unkept.splice(0, items.length);
}

// turnsOf returns the questions of all sides with the answers to each. The second model may have come later, so its
// answers stand at the same question.
export function turnsOf(sides) {
  const turns = [];
  sides.forEach((messages, side) => {
    let turn;
    let from = 0;
    for (const m of messages) {
      if (m.role === 'user') {
        const same = JSON.stringify(m.content);
        turn = turns.slice(from).find((t) => JSON.stringify(t.asked) === same);
        if (!turn) turns.push(turn = { asked: m.content, answers: [] });
        from = turns.indexOf(turn) + 1;
      } else if (m.role === 'assistant') turn?.answers.push({ side, said: m });
    }
  });
  return turns;
}

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

export function asCode(address, body) {
  const json = JSON.stringify(body, null, 2);
  return {
    curl: `curl ${address}/v1/chat/completions \\\n  -H 'Authorization: Bearer YOUR_KEY' \\\n  -H 'Content-Type: application/json' \\\n  -d '${json.replaceAll("'", "'\\''")}'`,
    python: `# pip install openai\nfrom openai import OpenAI\n\nclient = OpenAI(base_url="${address}/v1", api_key="YOUR_KEY")\nreply = client.chat.completions.create(\n${Object.entries(body).map(([k, v]) => `    ${k}=${python(v)},\n`).join('')})\nprint(reply.choices[0].message.content)`,
    typescript: `// npm install openai\nimport OpenAI from 'openai';\n\nconst client = new OpenAI({ baseURL: '${address}/v1', apiKey: 'YOUR_KEY' });\nconst reply = await client.chat.completions.create(${json});\nconsole.log(reply.choices[0].message.content);`,
  };
}

// dialog opens a dialog whose form does something with a chat.
function dialog(name, chat, act) {
  const form = $(name).querySelector('form');
  const problem = form.querySelector('.problem');
  problem.hidden = true;
  form.onsubmit = async (e) => {
    e.preventDefault();
    try {
      await chat.saving;
      await act(chat);
      $(name).close();
    } catch (x) {
      problem.textContent = x.message;
      problem.hidden = false;
    }
  };
  form.querySelector('[value=cancel]').onclick = () => $(name).close();
  $(name).showModal();
}

// rename asks for another title of a chat.
export function rename(chat, kept) {
  $('title').value = chat.metadata.title;
  dialog('rename', chat, async () => {
    const metadata = { ...chat.metadata, title: $('title').value.trim() };
    await kept.describe(chat.id, metadata);
    Object.assign(chat.metadata, metadata);
    $('chats').querySelector(`[data-id="${chat.id}"]`).textContent = metadata.title;
  });
}

// remove deletes a chat, if its user is sure of that, and calls gone then.
export function remove(chat, kept, gone) {
  $('remove-of').textContent = chat.metadata.title;
  dialog('remove', chat, async () => {
    chat.gone = true;
    try {
      for (const id of [chat.metadata.second, chat.id]) if (id) await kept.remove(id);
    } catch (e) {
      chat.gone = false;
      throw e;
    }
    $('chats').querySelector(`[data-id="${chat.id}"]`).closest('li').remove();
    gone();
  });
}
