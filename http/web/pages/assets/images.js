// The page /images: pictures are made, edited under a mask that is painted by hand, and kept in conversations of the
// account. Prices are those of a dry run of the same request, which computes what the request would hold. Text of
// models reaches the page as text, never as HTML.
import { Kept, blobOf, image, message, urlOf, words } from './kept.js';
import { receipt } from './stream.js';

const $ = (id) => document.getElementById(id);
const headers = { 'x-stagedoor-form': $('images').dataset.token };
const kept = new Kept('/images/api', headers['x-stagedoor-form'], 'images');
const thumbnailEdge = 512;
const show = (node, visible) => { node.hidden = !visible; };
const complain = (node, text) => { node.textContent = text ?? ''; show(node, Boolean(text)); };
// dollars writes micro-dollars in full: a price that was rounded down would be less than the charge.
const dollars = (micros) =>
  (micros > 0 ? `$${(micros / 1e6).toFixed(6).replace(/(\.\d\d\d*?)0+$/, '$1')}` : 'no charge');

// A request is what the gateway gets: its path, and its members, of which pictures are blobs.
const generation = (members) => ({ path: 'generations', members: { response_format: 'b64_json', ...members } });

async function send({ path, members }, more = {}, signal = undefined) {
  const given = Object.entries(members).filter(([, value]) => value !== undefined && value !== '');
  let [type, body] = [{ 'content-type': 'application/json' }, JSON.stringify(Object.fromEntries(given))];
  if (path === 'edits') {
    [type, body] = [{}, new FormData()];
    for (const [name, value] of given) body.append(name, value, ...(value instanceof Blob ? [`${name}.${value.type.split('/')[1]}`] : []));
  }
  let [reply, content] = [];
  try {
    const options = { method: 'POST', signal, headers: { ...headers, ...type, ...more }, body };
    reply = await fetch(`/images/api/images/${path}`, options);
    content = await reply.json().catch((e) => { if (reply.ok) throw e; return {}; });
  } catch (e) {
    throw Object.assign(new Error(e.message), { lost: true }); // the request may have been made all the same
  }
  if (reply.ok) return { ...content, id: reply.headers.get('x-original-request-id') ?? reply.headers.get('x-request-id') };
  throw new Error(content.error?.message ?? `The gateway answered with status ${reply.status}.`);
}

const exact = ({ members: { model } }) =>
  $('models').querySelector(`option[value="${CSS.escape(model)}"][data-exact]`);

// price returns in words what a request would cost.
async function price(request, signal) {
  const prompt = request.members.prompt || 'x'; // it may not be typed yet
  const members = { ...request.members, prompt };
  const { estimated_hold: hold } = await send({ ...request, members }, { 'x-dry-run': '1' }, signal);
  return hold ? `${exact(request) ? '' : 'up to '}${dollars(hold)}` : 'free';
}

const asked = ({ path, members: { n = 1 } }) => (path === 'edits' ? 'Edit' : n > 1 ? `Generate ${n}` : 'Generate');

// label writes on a button the price of the request that make returns, when there was no further change for a moment.
// Until then no price stands there. What would refuse the request is said before the click.
async function label(button, make, problem) {
  button.quote?.abort();
  const { signal } = button.quote = new AbortController();
  button.textContent = button.textContent.replace(/ for .*/, ' for …');
  await new Promise((resolve) => setTimeout(resolve, 300));
  if (signal.aborted) return; // by a later change
  const request = await make();
  let [text, refused] = [asked(request)];
  try { text += ` for ${await price(request, signal)}`; } catch (e) { refused = e.message; }
  if (signal.aborted) return;
  button.textContent = text;
  complain(problem, refused);
}

const prices = new Map(); // prices in words, by what they depend on

// known returns the price of a request, of which that of a similar one is remembered.
function known(request) {
  const key = JSON.stringify(exact(request) ? { ...request.members, prompt: undefined } : request.members);
  if (!prices.has(key)) prices.set(key, price(request).catch(() => undefined));
  return prices.get(key);
}

// The form.

function settings() {
  return generation({ model: $('model').value.trim(), prompt: $('prompt').value.trim(), size: $('size').value, quality: $('quality').value,
    output_format: $('format').value, n: Math.max(1, Number($('count').value) || 1) });
}

function quote() {
  for (const b of document.querySelectorAll('[data-model]')) b.ariaPressed = String(b.dataset.model === $('model').value.trim());
  if ($('model').value.trim()) label($('go'), settings, $('refused'));
}

// onField calls changed when a field changes on which the price depends. The prompt of an edit counts when it is
// complete, because the question for the price has the picture.
function onField(form, changed) {
  form.oninput = (e) => { if (!e.target.matches('#edit-prompt, #keep, #brush')) changed(); };
  form.onchange = (e) => { if (e.target.matches('#edit-prompt')) changed(); };
}

onField($('make'), quote);
document.querySelector('.chips')?.addEventListener('click', (e) => {
  const choice = e.target.closest('[data-model]');
  if (!choice) return;
  $('model').value = choice.dataset.model;
  quote();
});
$('make').onsubmit = (e) => { e.preventDefault(); make(settings()); };
$('prompt').onkeydown = (e) => {
  if (e.key === 'Enter' && (e.ctrlKey || e.metaKey) && !e.repeat) $('make').requestSubmit();
};

let latest = {}; // the request that was made last

// make asks for pictures and shows each on a card of its own. A second click at once is not another request.
function make(request) {
  const now = { text: JSON.stringify(request), at: performance.now() };
  if (now.text === latest.text && now.at - latest.at < 1000) return;
  latest = now;
  const job = { request, key: crypto.randomUUID?.() ?? String(Math.random()) };
  job.cards = Array.from({ length: request.members.n ?? 1 }, () => new Card({ request, job }));
  $('pictures').prepend(...job.cards.map((c) => c.node));
  show($('none'), false);
  run(job);
}

// run gets the pictures of a job. A request that is sent again with the key of the job is made and charged once, so
// that a reply which was lost on its way is fetched again.
async function run({ request, key, cards }) {
  const abort = new AbortController();
  for (const c of cards) c.begin(abort);
  const ask = () => send(request, { 'idempotency-key': key, 'x-on-disconnect': 'finish' }, abort.signal);
  let reply;
  try {
    reply = await ask().catch((e) => { if (!e.lost || abort.signal.aborted) throw e; return ask(); });
    if (!reply.data?.length) throw new Error('The reply has no picture.');
  } catch (e) {
    const why = abort.signal.aborted ? 'Stopped.' : `The reply was lost: ${e.message}.`;
    const text = `${why} What the gateway has begun is made and charged. Fetch gets it without a second charge.`;
    for (const c of cards) c.fail(e.lost ? text : e.message, e.lost);
    return;
  }
  cards.splice(reply.data.length).forEach((c) => c.drop());
  const problem = (e) => `This picture cannot be shown: ${e.message}`;
  await Promise.all(cards.map((c, i) => c.finish(reply.data[i], reply).catch((e) => c.fail(problem(e)))));
  $('news').textContent = cards.length > 1 ? `${cards.length} pictures are done` : 'The picture is done';
  const paid = await receipt(`/images/api/receipts/${encodeURIComponent(reply.id)}`, headers).catch(() => undefined);
  if (paid) for (const c of cards) c.pay(Math.round(paid.charged / cards.length));
}

const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) if (isIntersecting) { sight.unobserve(target); target.card.look(); }
}, { rootMargin: '200px' });

// A Card has a picture that is being made, which has a request, or one of the gallery, which has the id of a
// conversation. Its facts are the metadata of that conversation.
class Card {
  constructor({ request, job, id, facts }) {
    const { prompt, model, size, quality, output_format } = request?.members ?? {};
    Object.assign(this, { request, job, id });
    this.facts = facts ?? { prompt, model, asked_size: size, asked_quality: quality, output_format, edit: request.path === 'edits' ? '1' : undefined };
    this.node = $('picture').content.firstElementChild.cloneNode(true);
    this.node.card = this;
    const find = (selector) => this.node.querySelector(selector);
    this.parts = { img: find('img'), wait: find('.stage p'), prompt: find('.prompt'), facts: find('.facts'), problem: find('.problem'), tools: find('.tools') };
    this.node.onclick = (e) => {
      const what = e.target.closest('button')?.dataset.do;
      if (what) Promise.resolve(this[what]()).catch((x) => complain(this.parts.problem, x.message));
    };
    this.draw();
    if (id) sight.observe(this.node);
  }

  draw() {
    const { prompt, model, size, quality, seed, cost, edit } = this.facts;
    this.parts.prompt.textContent = this.parts.prompt.title = this.parts.img.alt = prompt;
    this.parts.facts.textContent = [edit ? `${model}, edited` : model, size?.replace('x', ' × '), quality, seed && `seed ${seed}`, cost && dollars(Number(cost))].filter(Boolean).join(' · ');
    this.parts.wait.textContent = `being made, ${Math.floor((performance.now() - this.from) / 1000)} s`;
    show(this.parts.wait, Boolean(this.abort));
    const done = Boolean(this.thumbnail);
    const can = { stop: this.abort, fetch: this.lost, again: done && this.same(), vary: done && !edit, edit: done,
      save: done || this.full, remove: !this.abort };
    for (const b of this.parts.tools.children) {
      show(b, Boolean(can[b.dataset.do]));
      b.ariaLabel = `${b.textContent}: ${prompt}`.slice(0, 200);
    }
    this.node.ariaBusy = String(Boolean(this.abort));
  }

  know(facts) {
    Object.assign(this.facts, facts);
    this.draw();
  }

  // begin shows that the picture is being made, until end.
  begin(abort) {
    this.abort = abort;
    this.lost = false;
    this.from = performance.now();
    this.timer = setInterval(() => this.draw(), 1000);
    complain(this.parts.problem);
    this.draw();
  }

  end() {
    clearInterval(this.timer);
    this.abort = undefined;
    this.draw();
  }

  // fail shows why there is no picture. lost says that it may have been made all the same.
  fail(text, lost) {
    complain(this.parts.problem, text);
    this.lost = lost;
    this.end();
  }

  fetch() { run(this.job); }

  async finish(made, reply) {
    const type = `image/${reply.output_format ?? 'png'}`;
    this.full = made.b64_json ? blobOf(`data:${type};base64,${made.b64_json}`) : await (await fetch(made.url)).blob();
    const bitmap = await createImageBitmap(this.full);
    this.thumbnail = smaller(bitmap);
    this.know({ size: `${bitmap.width}x${bitmap.height}`, quality: this.facts.asked_quality || reply.quality, seed: made.seed });
    this.see(this.full);
    this.end();
    this.price();
    this.keeping = this.keep();
  }

  // pay notes what was charged, in the gallery too.
  pay(cost) {
    this.know({ cost: String(cost) });
    this.keeping = this.keeping?.then(() => this.id && !this.gone && kept.describe(this.id, this.metadata())).catch(() => {});
  }

  see(blob) {
    URL.revokeObjectURL(this.parts.img.src);
    this.parts.img.src = URL.createObjectURL(blob);
    show(this.parts.img, true);
  }

  // price writes what the same picture would cost on the button that makes it again.
  async price() {
    const [request, button] = [this.same(), this.parts.tools.querySelector('[data-do=again]')];
    const text = request && await known(request);
    if (text) button.querySelector('span').textContent = `Regenerate for ${text}`;
    this.draw();
  }

  // same returns the request for one such picture, or undefined for an edit of the gallery, whose source is not kept.
  same() {
    const { prompt, model, asked_size: size, asked_quality: quality, output_format, edit } = this.facts;
    if (edit) return this.request;
    return generation({ prompt, model, size, quality, output_format });
  }

  metadata() {
    const given = Object.entries(this.facts).filter(([, value]) => value);
    return Object.fromEntries(given.map(([name, value]) => [name, String(value).slice(0, 500)]));
  }

  // keep stores the picture with a small one before it, which the gallery shows.
  async keep() {
    if (!$('keep').checked) return;
    try {
      const full = await urlOf(this.full);
      if (this.gone) return;
      this.id = await kept.create(this.metadata(), [message('user', words(this.facts.prompt), image(this.thumbnail)), message('user', image(full))]);
    } catch (e) {
      complain(this.parts.problem, `This picture is not kept: ${e.message}`);
    }
  }

  // look fetches the small picture and the whole prompt of a card of the gallery that is in sight.
  async look() {
    try {
      const { data: [first] } = await kept.items(this.id, { limit: 1, order: 'asc' });
      const [text, small] = first.content;
      this.thumbnail = small.image_url;
      this.know({ prompt: text.text });
      this.see(blobOf(this.thumbnail));
      await this.price();
    } catch (e) {
      complain(this.parts.problem, e.message);
    }
  }

  // whole returns the picture in its full size.
  async whole() {
    if (!this.full) {
      const { data: [last] } = await kept.items(this.id, { limit: 1, order: 'desc' });
      this.full = blobOf(last.content[0].image_url);
    }
    return this.full;
  }

  drop() {
    clearInterval(this.timer);
    URL.revokeObjectURL(this.parts.img.src);
    this.node.remove();
    show($('none'), !$('pictures').firstElementChild);
  }

  stop() { this.abort.abort(); }

  again() { make(this.same()); }

  vary() {
    const of = this.same().members;
    $('vary-of').textContent = of.prompt;
    $('vary-size').value = of.size ?? '';
    $('vary-quality').value = of.quality ?? '';
    const variation = () => generation({ ...of, size: $('vary-size').value, quality: $('vary-quality').value, n: Number($('vary-count').value) || 1 });
    open('vary', (now) => label(now, variation, $('vary').querySelector('.problem')), () => make(variation()));
  }

  async edit() {
    const source = await this.whole();
    await easel.show(source);
    $('edit-prompt').value = '';
    const { model, asked_size: size, asked_quality: quality } = this.facts;
    const edition = async () => ({ path: 'edits', members: { response_format: 'b64_json', model, size, quality, prompt: $('edit-prompt').value.trim(), image: source, mask: await easel.mask() } });
    open('edit', (now) => label(now, edition, $('edit').querySelector('.problem')), async () => make(await edition()));
  }

  async save() {
    const source = await this.whole();
    const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(source), download: `${this.id ?? 'picture'}.${source.type.split('/')[1]}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  remove() {
    $('remove-of').textContent = this.facts.prompt;
    open('remove', () => {}, async () => {
      this.gone = true;
      await this.keeping; // what is being stored is deleted, too
      if (this.id) await kept.remove(this.id);
      this.drop();
    });
  }
}

// smaller returns a data URL of a small form of a picture.
function smaller(bitmap) {
  const scale = Math.min(1, thumbnailEdge / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [bitmap.width, bitmap.height].map((n) => Math.max(1, Math.round(n * scale)));
  canvas.getContext('2d').drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL('image/webp', 0.8);
}

// open shows a dialog. changed gets its button whenever a field changes, and submit does what the button says. The
// dialog stays open with the reason if that fails.
function open(name, changed, submit) {
  const [dialog, form] = [$(name), $(name).querySelector('form')];
  const [button, problem] = [form.querySelector('[type=submit]'), form.querySelector('.problem')];
  complain(problem);
  onField(form, () => changed(button));
  form.onsubmit = async (e) => {
    e.preventDefault();
    button.disabled = true;
    try {
      const done = submit();
      if (name === 'remove') await done; // what is made shows its end on its own card
      dialog.close();
    } catch (x) {
      complain(problem, x.message);
    } finally {
      button.disabled = false;
    }
  };
  changed(button);
  dialog.showModal();
}

for (const b of document.querySelectorAll('dialog [value=cancel]')) b.onclick = () => b.closest('dialog').close();

// The easel shows a picture below a canvas. What is painted there becomes the transparent part of the mask.
const easel = {
  canvas: $('mask'),
  picture: $('edit').querySelector('img'),

  async show(source) {
    const { width, height } = await createImageBitmap(source);
    URL.revokeObjectURL(this.picture.src);
    this.picture.src = URL.createObjectURL(source);
    Object.assign(this.canvas, { width, height });
    this.at = [width / 2, height / 2];
    this.painted = false;
  },

  line(from, to) {
    const { canvas } = this;
    const brush = canvas.getContext('2d');
    Object.assign(brush, { lineWidth: canvas.width * $('brush').value / 100, lineCap: 'round', lineJoin: 'round', strokeStyle: '#4353d8' });
    brush.beginPath();
    brush.moveTo(...from);
    brush.lineTo(...to);
    brush.stroke();
    this.at = to;
    this.paint(true);
  },

  clear() {
    this.canvas.getContext('2d').clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.paint(false);
  },

  // paint notes whether there is paint. The mask is part of the price.
  paint(painted) {
    const changed = this.painted !== painted;
    this.painted = painted;
    if (changed) this.canvas.dispatchEvent(new Event('input', { bubbles: true }));
  },

  // mask returns a PNG of the size of the picture that is transparent where it was painted, or undefined without paint.
  mask() {
    if (!this.painted) return undefined;
    const mask = document.createElement('canvas');
    [mask.width, mask.height] = [this.canvas.width, this.canvas.height];
    const brush = mask.getContext('2d');
    brush.fillRect(0, 0, mask.width, mask.height);
    brush.globalCompositeOperation = 'destination-out';
    brush.drawImage(this.canvas, 0, 0);
    return new Promise((resolve) => mask.toBlob(resolve, 'image/png'));
  },
};

const point = (e) => [e.offsetX / easel.canvas.clientWidth * easel.canvas.width, e.offsetY / easel.canvas.clientHeight * easel.canvas.height];
easel.canvas.onpointerdown = (e) => {
  easel.canvas.setPointerCapture(e.pointerId);
  easel.line(point(e), point(e));
};
easel.canvas.onpointermove = (e) => { if (e.buttons) easel.line(easel.at, point(e)); };
easel.canvas.onkeydown = (e) => {
  const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], ' ': [0, 0] }[e.key] ?? [];
  if (x === undefined) return;
  e.preventDefault();
  const { at, canvas: { width, height } } = easel;
  const to = [Math.min(width, Math.max(0, at[0] + x * width / 25)), Math.min(height, Math.max(0, at[1] + y * height / 25))];
  if (e.key === ' ' || e.shiftKey) easel.line(at, to);
  easel.at = to;
  easel.canvas.ariaLabel = `Mask: the brush is at ${Math.round(100 * to[0] / width)}% from the left and ${Math.round(100 * to[1] / height)}% from the top`;
};
$('unpaint').onclick = () => easel.clear();

// The gallery.

let older; // the argument for the pictures after those that are shown

async function load() {
  show($('more'), false);
  try {
    const { data, next } = await kept.list(older);
    $('pictures').append(...data.map(({ id, metadata }) => new Card({ id, facts: metadata }).node));
    older = next;
    show($('more'), Boolean(next));
    show($('none'), !$('pictures').firstElementChild);
  } catch (e) {
    complain($('gallery-problem'), `The gallery cannot be shown: ${e.message}`);
  }
}

$('more').onclick = load;
load();
quote();
