// The page /chat: one or two models answer the same questions, paid by the user who is signed in. A chat is kept in
// one conversation of the account for each model, of which the list shows the first. Text of replies reaches the page
// as text, never as HTML.
import { Kept } from './kept.js';
import { make } from './shell.js';

const $ = (id) => document.getElementById(id);
const root = $('chat');
const fields = [$('model-a'), $('model-b')];
const kept = new Kept('/chat/api', root.dataset.token, 'chat');
const requests = new WeakMap(); // the id of the request that an answer came from
// parts loads what a page without a question does not need.
const parts = () => import('./chatparts.js').catch(() => {
  complain('A part of this page cannot be loaded. Reload the page.');
  throw new Error('a part of this page cannot be loaded');
});
const mostAttached = 20 << 20; // bytes of files in one message
const fresh = () => ({ cost: 0, sides: fields.map((field) => ({ field, messages: [], seen: 0, unkept: [] })) });
let talk = fresh(); // the chat that is open
let attached = []; // parts of the next message
let running; // AbortController of the replies that stream
let sending; // the promise of the question whose replies stream
let opened = 0; // counts questions and openings of chats: a later one ends the opening of a kept chat
const saving = new Map(); // the promise of the last save of each chat
let last = ''; // the last question, for editing

// bill adds what a reply cost to its card and to the cost of its chat, and returns it once it is known.
async function bill(paying, card, id, { cost, paid }) {
  const charged = await paid(card, id, root);
  cost(card, charged);
  paying.cost += charged ?? 0;
  left -= charged ?? 0;
  spent();
  return charged;
}

let left = Number(root.dataset.left);

// spent says what the chat has cost and what is left, which the page says itself until a chat is opened.
async function spent() {
  const money = await parts().then((p) => p.money, () => undefined);
  if (money) $('spent').textContent = [talk.cost && `This chat ${money(talk.cost)}`, left > 0 && `${money(left)} left`].filter(Boolean).join(' · ');
}

// newCard returns an empty answer of one side.
function newCard(side) {
  const card = $('reply').content.firstElementChild.cloneNode(true);
  card.classList.add('ab'[talk.sides.indexOf(side)] ?? 'a');
  return card;
}

async function send(question) {
  const current = talk; // "New chat" may open another one before the answers are there
  const used = current.sides.filter((s) => s.field.value.trim());
  complain('');
  opened++;
  running = new AbortController();
  busy(true);
  const loaded = await parts().catch(() => {}); // which complains itself
  try {
    if (!used.length) throw new Error('Choose a model.');
    loaded?.parameters();
  } catch (e) {
    complain(e.message);
    used.length = 0;
  }
  if (!loaded || !used.length) { // the question stays in its field
    busy(false);
    running = undefined;
    return;
  }
  const { answer, asked, queue, race, verdict } = loaded;
  $('start').hidden = true;
  last = question;
  const content = attached.length ? [{ type: 'text', text: question }, ...attached] : question;
  for (const s of used) s.messages.push({ role: 'user', content });
  const cards = used.map(newCard);
  const turn = make('section', 'turn', asked(content), make('div', 'answers', ...cards));
  $('talk').append(turn);
  attach([]);
  $('question').value = '';
  turn.scrollIntoView({ block: 'end' });
  const measures = await Promise.all(used.map(async (s, i) => {
    const m = await answer(s, cards[i], root, requests, running.signal);
    if (m) m.charged = bill(current, cards[i], m.id, loaded).catch(() => undefined);
    return m;
  }));
  busy(false);
  running = undefined;
  queue(used, requests, $('keep').checked);
  save(current);
  if (measures.length === 2 && measures.every((m) => m?.first)) {
    turn.querySelector('.asked').after(race(used.map((s) => s.field.value), measures));
    turn.append(verdict(cards, measures, []));
    const costs = await Promise.all(measures.map((m) => m.charged));
    turn.querySelector('.verdict').replaceWith(verdict(cards, measures, costs));
  }
}

function busy(on) {
  $('send').hidden = on;
  $('stop').hidden = !on;
}

function attach(parts) {
  attached = parts;
  $('pictures').textContent = parts.length ? `${parts.length} file${parts.length > 1 ? 's' : ''} attached` : '';
  $('picture').value = '';
}

$('picture').onchange = async (e) => {
  const files = [...e.target.files].slice(0, 8);
  if (files.reduce((sum, f) => sum + f.size, 0) > mostAttached) {
    complain('These files have more than 20 MB.');
    return;
  }
  const { partOf } = await parts();
  attach(await Promise.all(files.map(partOf)));
};

function complain(text) {
  $('problem').textContent = text;
  $('problem').hidden = !text;
}

$('composer').onsubmit = (e) => {
  e.preventDefault();
  const question = $('question').value.trim();
  if (question && !running) sending = send(question);
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
// show makes a chat the one that is open.
function show(chat) {
  running?.abort();
  opened++;
  if (talk.system === $('system').value) $('system').value = ''; // it is that of the chat which was open
  talk = chat;
  for (const turn of $('talk').querySelectorAll('.turn')) turn.remove();
  complain('');
  settings();
  mark();
  spent();
}

$('new').onclick = () => {
  show(fresh());
  $('start').hidden = false;
  $('question').focus();
};

// mark shows which chat is open, in the list, on the buttons and in the address.
function mark() {
  for (const b of $('chats').querySelectorAll('button')) b.ariaCurrent = String(b.dataset.id === talk.id);
  $('rename-open').hidden = $('remove-open').hidden = !talk.id;
  history.replaceState(null, '', talk.id ? `?chat=${talk.id}` : location.pathname);
}

// save keeps the unkept items of a chat. What cannot be kept now is kept after the next answer.
function save(chat) {
  chat.saving = (chat.saving ?? Promise.resolve()).then(() => keep(chat)).catch((e) => complain(`This chat is not kept: ${e.message}`));
  if (chat.id) saving.set(chat.id, chat.saving);
}

async function keep(chat) {
  if (chat.gone) return;
  await (await parts()).store(kept, chat, $('system').value.trim(), () => {
    saving.set(chat.id, chat.saving);
    $('chats').prepend(entry(chat.id, chat.metadata));
    $('past-none').hidden = true;
    if (chat === talk) mark();
  });
}

function entry(id, metadata) {
  const button = make('button', 'link', metadata.title || 'Chat');
  button.type = 'button';
  button.dataset.id = id;
  button.onclick = () => reopen(id, metadata).catch((e) => complain(e.message));
  return make('li', '', button);
}

// reopen shows a chat that is kept, unless another one is opened or a question is asked meanwhile. What this page has
// of the chat is kept first.
async function reopen(id, metadata) {
  const turn = ++opened;
  if (id === talk.id) return;
  running?.abort();
  await sending;
  await saving.get(id);
  metadata ??= (await kept.get(id)).metadata;
  const [first, second] = await Promise.all([id, metadata.second].map((c) => (c ? kept.allItems(c) : [])));
  const { asked, calledAs, cost, messagesOf, paid, turnsOf, write } = await parts();
  if (turn !== opened) return;
  const chat = Object.assign(fresh(), { id, metadata });
  chat.sides.forEach((side, i) => {
    side.id = [id, metadata.second][i];
    const instructed = (text) => { chat.system = text; };
    side.messages = messagesOf([first, second][i], (m, request) => requests.set(m, request), instructed);
    side.seen = side.messages.length;
    side.field.value = [metadata.model, metadata.second_model][i] ?? '';
  });
  show(chat);
  $('system').value = chat.system ?? '';
  settings();
  $('start').hidden = true;
  $('both').checked = Boolean(fields[1].value);
  prices();
  const turns = turnsOf(chat.sides.map((side) => side.messages));
  for (const t of turns) t.cards = t.answers.map(({ side, said: m }) => {
    const card = newCard(chat.sides[side]);
    const said = card.querySelector('.said');
    card.querySelector('h2').textContent = chat.sides[side].field.value;
    card.request = requests.get(m);
    said.ariaBusy = 'false';
    write(said, m.content ?? '');
    if (m.tool_calls) said.append(calledAs(m.tool_calls));
    return card;
  });
  $('talk').append(...turns.map((t) => make('section', 'turn', asked(t.asked), make('div', 'answers', ...t.cards))));
  $('talk').lastElementChild.scrollIntoView({ block: 'end' });
  for (const card of turns.slice(-10).flatMap((t) => t.cards).filter((c) => c.request)) {
    const charged = await paid(card, card.request, root, [0]).catch(() => undefined);
    if (charged !== undefined) cost(card, charged);
  }
}

let older;

async function list() {
  $('past-more').hidden = true;
  try {
    const { data, next } = await kept.list(older);
    $('chats').append(...data.map(({ id, metadata }) => entry(id, metadata)));
    older = next;
    $('past-more').hidden = !next;
    $('past-none').hidden = Boolean($('chats').firstElementChild);
    const wanted = new URLSearchParams(location.search).get('chat');
    if (wanted && !opened) await reopen(wanted);
    mark();
  } catch (e) {
    complain(`Your chats cannot be shown: ${e.message}`);
  }
}

$('rename-open').onclick = async () => (await parts()).rename(talk, kept);
$('remove-open').onclick = async () => (await parts()).remove(talk, kept, () => $('new').click());
$('past-more').onclick = list;

// prices shows what each model costs.
function prices() {
  const two = Boolean(fields[1].value.trim());
  if (two) $('both').checked = true;
  $('question').placeholder = two ? 'Ask both models' : 'Ask something';
  $('send').querySelector('span').textContent = two ? 'Ask both' : 'Ask';
  for (const p of root.querySelectorAll('[data-price]')) p.textContent = $('models').querySelector(`option[value="${CSS.escape($(p.dataset.price).value.trim())}"]`)?.label ?? '';
}

for (const f of fields) f.addEventListener('input', prices);

// The second model takes part while its switch is on. Its name is kept for the next time.
$('both').onchange = () => {
  const [first, second] = fields;
  const others = [...$('models').options].map((o) => o.value).filter((name) => name !== first.value.trim());
  if (!$('both').checked) second.dataset.last = second.value;
  second.value = $('both').checked ? second.dataset.last || others[0] || '' : '';
  prices();
};

// settings says in a few words which parameters are not their defaults.
function settings() {
  const said = [['temperature', 'temp'], ['top-p', 'top P'], ['max-tokens', 'max']].filter(([id]) => $(id).value).map(([id, name]) => `${name} ${$(id).value}`);
  $('set').textContent = [...said, $('system').value.trim() && 'instructions', $('more').value.trim() && 'parameters'].filter(Boolean).join(' · ');
}
$('composer').addEventListener('input', settings);

$('start').onclick = (e) => { if (e.target.matches('button') && !running) sending = send(e.target.textContent); };

$('code-open').onclick = async () => {
  const side = talk.sides.find((s) => s.field.value.trim()) ?? talk.sides[0];
  const question = $('question').value.trim() || (side.messages.length ? '' : 'Hello');
  const messages = question ? [...side.messages, { role: 'user', content: question }] : side.messages.slice(0, side.messages.findLastIndex((m) => m.role === 'user') + 1);
  try {
    const { asCode, bodyFor } = await parts();
    for (const [name, text] of Object.entries(asCode(root.dataset.address, bodyFor(side, messages)))) $(`code-${name}`).textContent = text;
    $('code').showModal();
  } catch (e) {
    complain(e.message);
  }
};
$('code-close').onclick = () => $('code').close();
$('past').open = matchMedia('(min-width: 64rem)').matches;
prices();
list();
