// The page /live: video jobs as cards that move while the jobs do.
//
//   Gateway  sends requests as the signed-in user or with a key
//   Feed     hears what changes, over a WebSocket or, with a key, which sockets of
//            browsers cannot send, over a stream of events; comes back by itself
//   Wall     the cards; what was heard is drawn once a frame, and only what changed
//
// Text from jobs reaches the page as text, never as HTML.

const root = document.getElementById('live');
const $ = (id) => document.getElementById(id);

const silence = 45_000; // after which a line is taken for dead
const firstPause = 500;
const longPause = 15_000;
const mostInSnapshot = 1000;
const pageSize = 60;
const queueEvery = 5000;
const keyName = 'stagedoor.key';

const sleep = (ms, signal) => new Promise((resolve) => {
  const done = () => { clearTimeout(timer); removeEventListener('online', done); signal.removeEventListener('abort', done); resolve(); };
  const timer = setTimeout(done, ms);
  addEventListener('online', done);
  signal.addEventListener('abort', done);
});

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

class Gateway {
  // With a key it is any client of the API. Without one it acts for the session,
  // below /live, where forms need the page's token.
  constructor(key, token) {
    this.key = key;
    this.token = token;
    this.base = key ? '/v1' : '/live';
    this.skew = 0; // of the gateway's clock against this one
  }

  headers(more = {}) {
    return this.key ? { authorization: `Bearer ${this.key}`, ...more } : { 'x-stagedoor-form': this.token, ...more };
  }

  async ask(path, options = {}) {
    const response = await fetch(this.base + path, { ...options, headers: this.headers(options.headers), redirect: 'error', cache: 'no-store' });
    const date = Date.parse(response.headers.get('date'));
    if (date) this.skew = date - Date.now();
    if (response.ok) return response;
    let message = `The gateway answered ${response.status}.`;
    try {
      message = (await response.json()).error.message;
    } catch { /* the answer of a proxy is no JSON */ }
    throw new Refusal(response.status, message);
  }

  json(path, options) { return this.ask(path, options).then((r) => r.json()); }

  create(form) { return this.json('/videos', { method: 'POST', body: form, headers: { 'idempotency-key': crypto.randomUUID?.() ?? String(Math.random()) } }); }

  remix(id, prompt) {
    return this.json(`/videos/${id}/remix`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ prompt }) });
  }

  remove(id) { return this.ask(`/videos/${id}`, { method: 'DELETE' }); }

  list(after) { return this.json(`/videos?limit=100${after ? `&after=${encodeURIComponent(after)}` : ''}`); }

  // price returns in words what a video would cost, or undefined with a key, for which no page knows the account.
  async price(query) {
    if (this.key) return undefined;
    const { price } = await this.json(`/price?${new URLSearchParams(query)}`);
    return price ? dollars(price) : 'free';
  }

  // queue returns the positions of the jobs that wait, by their ids.
  async queue() { return this.key ? {} : (await this.json('/queue')).positions; }

  cost(id) { return this.json(`/receipts/${id}`).then((r) => r.charged); }

  // content is an address that the browser can show. Elements send no key, so with
  // one the bytes are fetched; who asked lets go of them by release.
  async content(id, variant) {
    const path = `/videos/${id}/content${variant ? `?variant=${variant}` : ''}`;
    if (!this.key) return this.base + path;
    return URL.createObjectURL(await (await this.ask(path)).blob());
  }

  release(address) { if (address?.startsWith('blob:')) URL.revokeObjectURL(address); }
}

class Feed {
  constructor(gateway, { hear, line }) {
    Object.assign(this, { gateway, hear, line, revision: 0 });
    this.stop = new AbortController();
  }

  close() { this.stop.abort(); }

  async run() {
    const { signal } = this.stop;
    for (let failures = 0; !signal.aborted; failures++) {
      this.alive = false;
      try {
        await (this.gateway.key ? this.stream() : this.socket());
      } catch (e) {
        if (e instanceof Refusal && [400, 401, 403, 404].includes(e.status)) {
          if (!signal.aborted) this.line('refused', e.message);
          return;
        }
      }
      if (signal.aborted) return;
      if (this.alive) failures = 0;
      this.line('lost');
      const pause = Math.min(firstPause * 2 ** failures, longPause);
      await sleep(pause / 2 + Math.random() * pause / 2, signal);
    }
  }

  take(message) {
    this.alive = true;
    if (message.revision) this.revision = message.revision;
    if (message.type === 'ready') this.line('live');
    this.hear(message);
  }

  // socket resolves when the line is gone. Why one did not come about a socket does
  // not tell, so it is asked for otherwise.
  async socket() {
    const { signal } = this.stop;
    const opened = await new Promise((resolve) => {
      const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/v1/videos/live`);
      let timer;
      let open = false;
      const subscribe = () => socket.send(JSON.stringify({ type: 'subscribe', ids: 'all', after: this.revision }));
      // A subscription is always answered: so one is the question whether the line
      // is alive.
      const watch = () => {
        clearTimeout(timer);
        timer = setTimeout(() => {
          if (socket.readyState === WebSocket.OPEN) subscribe();
          timer = setTimeout(end, silence / 3);
        }, silence);
      };
      const end = () => { // a dead line does not answer a close either
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        removeEventListener('offline', end);
        socket.onclose = socket.onmessage = socket.onerror = null;
        socket.close();
        resolve(open);
      };
      socket.onopen = () => { open = true; subscribe(); watch(); };
      socket.onmessage = (m) => { watch(); this.take(JSON.parse(m.data)); };
      socket.onclose = end;
      signal.addEventListener('abort', end);
      addEventListener('offline', end);
      watch();
    });
    if (!opened && !signal.aborted) await this.gateway.json('/videos?limit=1');
  }

  async stream() {
    const line = new AbortController();
    let timer;
    const watch = () => { clearTimeout(timer); timer = setTimeout(() => line.abort(), silence); };
    const end = () => line.abort();
    this.stop.signal.addEventListener('abort', end);
    addEventListener('offline', end);
    try {
      watch();
      const headers = { accept: 'text/event-stream', ...(this.revision ? { 'last-event-id': String(this.revision) } : {}) };
      const response = await this.gateway.ask('/videos/events', { headers, signal: line.signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        watch();
        const events = (text + value).split('\n\n');
        text = events.pop();
        for (const e of events) this.event(e);
      }
    } finally {
      clearTimeout(timer);
      this.stop.signal.removeEventListener('abort', end);
      removeEventListener('offline', end);
    }
  }

  event(text) {
    const fields = {};
    for (const line of text.split('\n')) {
      const at = line.indexOf(': ');
      if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
    }
    if (!fields.data) return;
    const type = ['snapshot', 'deleted', 'ready'].includes(fields.event) ? fields.event : 'job';
    this.take({ type, revision: Number(fields.id ?? 0), job: JSON.parse(fields.data) });
  }
}

const words = { queued: 'waiting', in_progress: 'in progress', completed: 'done', failed: 'failed' };
const isFinal = (job) => job.status === 'completed' || job.status === 'failed';
const groupOf = (job) => (isFinal(job) ? job.status : 'open');
const dollars = (micros) => `$${(micros / 1e6).toFixed(6).replace(/(\.\d\d\d*?)0+$/, '$1')}`;
// about writes a time that is only estimated.
const about = (seconds) => (seconds < 60 ? `${seconds} s` : `${Math.round(seconds / 60)} min`);
const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds) % 60).padStart(2, '0')}`;

// put writes only what is not there already: writing costs layout.
const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const show = (node, visible) => { if (node.hidden === visible) node.hidden = !visible; };

class Card {
  constructor(job, wall) {
    this.wall = wall;
    this.job = job;
    this.node = $('job').content.firstElementChild.cloneNode(true);
    this.node.card = this;
    const find = (selector) => this.node.querySelector(selector);
    this.parts = { stage: find('.stage'), picture: find('img'), play: find('.play'), prompt: find('.prompt'), facts: find('.facts span'), line: find('.bar-line'),
      bar: find('progress'), left: find('.left'), len: find('.len'), broken: find('.broken'), where: find('.where'), curtain: find('.curtain'), cloth: this.node.querySelectorAll('.curtain [fill="url(#folds)"]'), pick: find('.pick input'), pickName: find('.pick span'), problem: find('.problem'), tag: find('.end .tag'), took: find('.took'), cost: find('.cost'), tools: find('.tools') };
    this.node.addEventListener('click', (e) => {
      const button = e.target.closest('button');
      if (button) this.wall.act(button.dataset.do ?? 'play', this);
    });
    this.parts.pick.onchange = () => this.wall.pick();
    this.seen = false;
  }

  draw() {
    const { job, parts } = this;
    const done = job.status === 'completed';
    const name = job.prompt || job.id;
    this.node.className = `job card ${job.status}`;
    put(parts.prompt, name);
    parts.prompt.title = name;
    put(parts.facts, `${this.expired() ? 'expired · ' : ''}${job.model} · ${job.size.replace('x', ' × ')} · ${job.seconds} s${job.remixed_from_video_id ? ' · remix' : ''}`);
    if (parts.bar.value !== job.progress) parts.bar.value = job.progress;
    if (!parts.bar.ariaLabel) parts.bar.ariaLabel = `Progress of ${name}`;
    put(parts.len, done ? clock(job.seconds) : '');
    parts.broken.toggleAttribute('hidden', job.status !== 'failed');
    show(parts.line, !isFinal(job));
    parts.curtain.toggleAttribute('hidden', isFinal(job)); // a picture has no such property
    // The curtain opens with the progress, and some of it stays in sight.
    const width = String(160 - 1.4 * job.progress);
    if (this.opened !== width && !isFinal(job)) for (const cloth of parts.cloth) cloth.setAttribute('width', width);
    this.opened = width;
    put(parts.pickName, `Select ${name}`);
    put(parts.problem, job.error?.message ?? '');
    show(parts.problem, Boolean(job.error));
    const expired = this.expired();
    put(parts.tag, expired ? 'expired' : words[job.status] ?? job.status);
    parts.tag.className = `tag ${expired ? 'expired' : job.status}`;
    show(parts.play, done && !expired && !this.video);
    parts.play.ariaLabel = `Play ${name}`;
    for (const button of parts.tools.children) {
      show(button, button.dataset.do === 'remove' ? isFinal(job) : button.dataset.do === 'retry' ? job.status === 'failed' : this.ready());
      button.ariaLabel = `${button.textContent}: ${name}`;
    }
    this.tick();
    if (this.seen) this.fill();
  }

  expired() { return this.job.expires_at !== null && this.job.expires_at * 1000 <= Date.now() + this.wall.gateway.skew; }

  // ready reports whether the video can be played.
  ready() { return this.job.status === 'completed' && !this.expired(); }

  tick() {
    const now = (Date.now() + this.wall.gateway.skew) / 1000;
    const { job: { status, progress, created_at: since }, parts } = this;
    const left = status === 'in_progress' && progress >= 5 ? Math.ceil((now - since) * (100 - progress) / progress) : 0;
    put(parts.left, left ? `about ${about(left)} left` : words[status]);
    const position = this.wall.positions[this.job.id];
    const [before, figure, after] = status === 'in_progress' ? ['', progress, ' %'] : status === 'queued' && position ? ['position ', position, ''] : ['', '', ''];
    if (parts.where.textContent !== `${before}${figure}${after}`) parts.where.replaceChildren(before, Object.assign(document.createElement('b'), { textContent: figure }), after);
    put(this.parts.took, clock(Math.max((this.job.completed_at ?? now) - this.job.created_at, 0)));
  }

  // fill fetches what only a card in sight needs.
  async fill() {
    const { job, wall } = this;
    if (!isFinal(job) || this.filled) return;
    this.filled = true;
    wall.gateway.cost(job.id).then((micros) => put(this.parts.cost, ` · ${micros ? dollars(micros) : 'not charged'}`), () => {}); // what is free has no receipt
    if (job.status !== 'completed' || this.expired()) return;
    try {
      this.thumbnail = await wall.gateway.content(job.id, 'thumbnail');
      const { picture } = this.parts;
      picture.onload = () => show(picture, true);
      picture.src = this.thumbnail;
    } catch (e) {
      this.filled = e instanceof Refusal; // there is not always one, but the line may have been gone
    }
  }

  async play() {
    if (this.video) return;
    const video = document.createElement('video');
    Object.assign(video, { controls: true, autoplay: true, playsInline: true, loop: true });
    video.ariaLabel = this.job.prompt || this.job.id;
    this.video = video;
    show(this.parts.play, false);
    try {
      this.source = await this.wall.gateway.content(this.job.id);
      if (this.thumbnail) video.poster = this.thumbnail;
      video.onerror = () => { this.quit(); this.complain('The video cannot be played.'); };
      video.src = this.source;
      this.parts.stage.append(video);
      video.focus();
    } catch (e) {
      this.quit();
      this.complain(e.message);
    }
  }

  complain(text) {
    put(this.parts.problem, text);
    show(this.parts.problem, true);
  }

  quit() {
    this.video?.remove();
    this.video = null;
    this.wall.gateway.release(this.source);
    show(this.parts.play, this.job.status === 'completed' && !this.expired());
  }

  async save() {
    const address = await this.wall.gateway.content(this.job.id);
    const link = document.createElement('a');
    link.href = address;
    link.download = `${this.job.id}.mp4`;
    link.click();
    setTimeout(() => this.wall.gateway.release(address), 60_000);
  }

  drop() {
    this.quit();
    this.wall.gateway.release(this.thumbnail);
    this.node.remove();
  }
}

class Wall {
  constructor(gateway) {
    this.gateway = gateway;
    this.cards = new Map();
    this.order = []; // ids, the newest first: ids grow with time
    this.waiting = new Map(); // id to job, null: gone
    this.snapshot = null; // the ids of the snapshot that is being received
    this.counts = { all: 0, open: 0, completed: 0, failed: 0 };
    this.finished = [];
    this.limit = pageSize; // cards that are shown
    this.positions = {}; // in the queue, by the ids of jobs
    this.filter = document.querySelector('#filter input:checked').value;
    this.search = $('find').value.trim().toLowerCase();
    this.list = $('jobs');
    this.sight = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        target.card.seen = isIntersecting;
        if (isIntersecting) { target.card.tick(); target.card.fill(); }
      }
    }, { rootMargin: '200px' });
    this.list.onkeydown = (e) => this.key(e);
    this.queue = setInterval(() => this.poll(), queueEvery);
    this.seconds = setInterval(() => { if (!document.hidden) for (const c of this.cards.values()) if (c.seen && !isFinal(c.job)) c.tick(); }, 1000);
    this.feed = new Feed(gateway, { hear: (m) => this.hear(m), line: (state, why) => this.line(state, why) });
    this.line('opening');
    this.feed.run();
  }

  close() {
    this.feed.close();
    this.sight.disconnect();
    clearInterval(this.seconds);
    clearInterval(this.queue);
    this.list.onkeydown = null;
    clearTimeout(this.telling);
    this.closed = true;
    for (const c of this.cards.values()) c.drop();
  }

  line(state, why) {
    if (this.closed) return;
    const texts = { opening: 'connecting…', live: 'live', lost: 'connection lost, trying again…', refused: why };
    $('line').className = `tag ${state === 'live' ? 'live' : 'lost'}`;
    put($('line'), texts[state]);
  }

  hear({ type, job, revision }) {
    switch (type) {
      case 'snapshot':
        (this.snapshot ??= new Set()).add(job.id);
        return this.set(job.id, job);
      case 'job':
        return this.set(job.id, job);
      case 'deleted':
        return this.set(job.id, null);
      case 'ready':
        return this.settle();
    }
  }

  // settle ends a snapshot. Jobs that it does not have were deleted while the page was
  // not connected, or are so old that the page must ask for them.
  settle() {
    if (this.snapshot) {
      for (const id of this.cards.keys()) if (!this.snapshot.has(id)) this.set(id, null);
      this.beyond = this.snapshot.size >= mostInSnapshot;
      this.cursor = null;
      this.snapshot = null;
    }
    this.ready = true;
    this.later();
    requestAnimationFrame(() => this.poll()); // once the cards are there
  }

  // poll asks for the positions of the jobs that wait, while there are any.
  async poll() {
    if (document.hidden || ![...this.cards.values()].some((c) => c.job.status === 'queued')) return;
    this.positions = await this.gateway.queue().catch(() => ({}));
    if (!this.closed) for (const c of this.cards.values()) if (c.job.status === 'queued') c.tick();
  }

  set(id, job) {
    this.waiting.set(id, job);
    this.later();
  }

  // add shows a job that was asked for. What was heard of it is newer.
  add(job) {
    if (this.cards.has(job.id) || this.waiting.has(job.id)) return false;
    this.set(job.id, job);
    return true;
  }

  later() {
    if (this.frame || this.closed) return;
    this.frame = true;
    requestAnimationFrame(() => { this.frame = false; if (!this.closed) this.draw(); });
  }

  draw() {
    const fresh = [];
    for (const [id, job] of this.waiting) {
      const card = this.cards.get(id);
      if (!job) this.forget(id);
      else if (card) this.change(card, job);
      else fresh.push(job);
    }
    this.waiting.clear();
    this.insert(fresh);
    this.arrange();
    for (const span of document.querySelectorAll('[data-count]')) put(span, String(this.counts[span.dataset.count]));
    const empty = this.ready && !this.order.some((id) => !this.cards.get(id).node.hidden);
    show($('none'), empty && !this.order.length);
    show($('nothing'), empty && this.order.length > 0);
  }

  change(card, job) {
    const before = card.job;
    card.job = job;
    this.counts[groupOf(before)]--;
    this.counts[groupOf(job)]++;
    card.draw();
    if (isFinal(job) && !isFinal(before)) this.tell(job);
  }

  insert(jobs) {
    jobs.sort((a, b) => (a.id < b.id ? 1 : -1));
    let at = 0;
    let run = document.createDocumentFragment();
    for (const job of jobs) {
      const card = new Card(job, this);
      this.cards.set(job.id, card);
      this.counts.all++;
      this.counts[groupOf(job)]++;
      card.draw();
      const from = at;
      while (at < this.order.length && this.order[at] > job.id) at++;
      if (at > from && run.firstChild) { // those so far come before what was skipped
        this.list.insertBefore(run, this.cards.get(this.order[from]).node);
        run = document.createDocumentFragment();
      }
      run.append(card.node);
      this.order.splice(at, 0, job.id);
      at++;
      this.sight.observe(card.node);
    }
    if (run.firstChild) this.list.insertBefore(run, at < this.order.length ? this.cards.get(this.order[at]).node : null);
  }

  forget(id) {
    const card = this.cards.get(id);
    if (!card) return;
    const hadFocus = card.node.contains(document.activeElement);
    const next = card.node.nextElementSibling ?? card.node.previousElementSibling;
    this.cards.delete(id);
    this.order.splice(this.order.indexOf(id), 1);
    this.counts.all--;
    this.counts[groupOf(card.job)]--;
    this.sight.unobserve(card.node);
    card.drop();
    if (hadFocus) next?.querySelector('button:not([hidden])')?.focus();
  }

  // arrange shows the first cards that the filter lets through.
  arrange() {
    let fit = 0;
    for (const id of this.order) {
      const card = this.cards.get(id);
      const fits = (this.filter === 'all' || this.filter === groupOf(card.job)) && (card.job.prompt ?? '').toLowerCase().includes(this.search);
      if (fits) fit++;
      show(card.node, fits && fit <= this.limit);
    }
    this.rest = fit - this.limit;
    show($('more'), this.rest > 0 || this.beyond);
    show($('keys'), this.order.length > 0);
    this.pick();
  }

  // choose shows the videos of a group whose prompts have a text.
  choose(filter = this.filter, search = this.search) {
    this.filter = filter;
    this.search = search;
    this.limit = pageSize;
    this.arrange();
    this.later();
  }

  // picked returns the selected cards that are shown and that can be dealt with so.
  picked(can = () => true) { return [...this.cards.values()].filter((c) => c.parts.pick.checked && !c.node.hidden && can(c)); }

  // pick shows what can be done with the selected cards.
  pick() {
    const all = this.picked();
    show($('picked'), all.length > 0);
    if (!all.length) return;
    put($('picked').querySelector('span'), `${all.length} selected`);
    for (const [name, what, can] of [['Save', 'save', (c) => c.ready()], ['Delete', 'remove', (c) => isFinal(c.job)]]) {
      const button = $('picked').querySelector(`[data-all=${what}]`);
      const n = this.picked(can).length;
      button.disabled = !n;
      put(button, `${name} ${n}`);
    }
  }

  async all(what) {
    if (what === 'save') {
      for (const c of this.picked((c) => c.ready())) await c.save().catch((e) => c.complain(e.message));
      return;
    }
    if (what === 'remove') {
      const gone = this.picked((c) => isFinal(c.job));
      ask('remove', `${gone.length} videos`, async () => {
        const refused = [];
        for (const c of gone) await this.remove(c).catch((e) => refused.push(e.message));
        if (refused.length) throw new Error(`${refused.length} of ${gone.length} videos are not deleted: ${refused[0]}`);
      });
      return;
    }
    for (const c of this.picked()) c.parts.pick.checked = false;
    this.pick();
  }

  async remove(card) {
    await this.gateway.remove(card.job.id);
    this.set(card.job.id, null);
  }

  // key serves the keyboard on a card.
  key(e) {
    const card = e.target.closest('.job')?.card;
    if (!card || e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, video')) return;
    const what = { ' ': e.target === card.node && card.ready() && 'play', r: card.ready() && 'remix', Delete: isFinal(card.job) && 'remove' }[e.key];
    if (!what) return;
    e.preventDefault();
    this.act(what, card);
  }

  // tell says what ended to those who listen, once in a while and in one sentence.
  tell(job) {
    this.finished.push(`${words[job.status]}: ${(job.prompt || job.id).slice(0, 80)}`);
    this.telling ??= setTimeout(() => {
      put($('news'), this.finished.length < 4 ? this.finished.join('. ') : `${this.finished.length} videos are done`);
      this.finished = [];
      this.telling = undefined;
    }, 1500);
  }

  // older shows the next page of jobs, which the gateway is asked for if they are not here yet.
  async older() {
    const here = this.rest >= pageSize;
    this.limit += pageSize;
    this.later();
    if (here || !this.beyond) return;
    let found = 0;
    do {
      const page = await this.gateway.list(this.cursor);
      this.cursor = page.last_id;
      for (const job of page.data) {
        if (this.add(job)) found++;
      }
      this.beyond = page.has_more;
      this.later();
      if (!page.has_more) return;
    } while (!found);
  }

  act(what, card) {
    switch (what) {
      case 'play': return card.play();
      case 'save': return card.save().catch((e) => card.complain(e.message));
      case 'retry': return retry(card.job);
      case 'remix':
        price($('remix').querySelector('[type=submit]'), 'Remix', { remix: card.job.id })
          .then((why) => refuse('remix-refused', why));
        return ask('remix', card.job.prompt || card.job.id, (prompt) => this.gateway.remix(card.job.id, prompt), card.job.prompt ?? '');
      case 'remove': return ask('remove', card.job.prompt || card.job.id, () => this.remove(card));
    }
  }
}

// ask opens a dialog about a job and does what its form is for, until that
// succeeds or the dialog is closed.
function ask(name, about, act, prompt) {
  const dialog = $(name);
  const field = dialog.querySelector('textarea');
  const refused = $(`${name}-refused`);
  const submit = dialog.querySelector('[type=submit]');
  put($(`${name}-of`), about);
  if (field) field.value = prompt;
  show(refused, false);
  dialog.querySelector('form').onsubmit = async (e) => {
    e.preventDefault();
    submit.disabled = true;
    try {
      const job = await act(field?.value);
      if (job?.id) wall.add(job);
      dialog.close();
    } catch (problem) {
      put(refused, problem.message);
      show(refused, true);
    } finally {
      submit.disabled = false;
    }
  };
  dialog.showModal();
}

for (const dialog of document.querySelectorAll('dialog')) {
  dialog.querySelector('[value=cancel]').onclick = () => dialog.close();
}

let wall;

// price writes on a button what a video would cost, which the query says, and returns the reason why there is no price.
async function price(button, name, query) {
  const turn = button.turn = (button.turn ?? 0) + 1;
  let [text, refused] = [undefined, ''];
  put(button, name); // no price of before
  try { text = await wall?.gateway.price(query); } catch (e) { refused = e.message; }
  if (turn !== button.turn) return undefined; // a later change was faster
  put(button, text ? `${name} for ${text}` : name);
  return refused;
}

async function quote() {
  const model = $('model').value.trim();
  for (const b of document.querySelectorAll('[data-model]')) b.ariaPressed = String(b.dataset.model === model);
  if (!model) return;
  const query = { model, seconds: $('create').elements.seconds.value };
  const refused = await price($('create').querySelector('[type=submit]'), 'Generate', query);
  refuse('refused', refused);
}

// refuse shows why something is refused, unless that was asked of an earlier state of the form.
function refuse(id, why) {
  if (why === undefined) return;
  put($(id), why);
  show($(id), Boolean(why));
}

// retry fills the form with what a failed job was asked for.
function retry(job) {
  for (const name of ['prompt', 'model', 'size', 'seconds']) {
    const field = $('create').elements[name];
    field.value = job[name];
    if (field.value === job[name]) continue;
    const label = field[0].parentElement.cloneNode(true); // a program chose what the page does not offer
    label.replaceChildren(Object.assign(label.querySelector('input'), { value: job[name], checked: true }), name === 'size' ? job.size.replace('x', ' × ') : `${job.seconds} s`);
    field[0].closest('fieldset').append(label);
  }
  $('prompt').focus();
  quote();
}

// open shows the jobs of a key or, without one, of who is signed in.
function open(key) {
  wall?.close();
  wall = undefined;
  const whose = Boolean(key || root.dataset.token);
  show($('maker'), whose);
  show($('forget'), Boolean(key));
  if (whose) wall = new Wall(new Gateway(key, root.dataset.token));
  if (whose) quote();
}

$('keyform').onsubmit = (e) => {
  e.preventDefault();
  const key = $('key').value.trim();
  $('key').value = '';
  sessionStorage.setItem(keyName, key);
  open(key);
};

$('forget').onclick = () => {
  sessionStorage.removeItem(keyName);
  open(null);
};

document.querySelector('.chips')?.addEventListener('click', (e) => {
  const choice = e.target.closest('[data-model]');
  if (!choice) return;
  $('model').value = choice.dataset.model;
  quote();
});
$('create').onchange = (e) => {
  if (e.target.matches('#model, [name=seconds]')) quote();
  else if (e.target.id === 'reference') put($('reference-name'), e.target.files[0]?.name ?? '');
};
$('find').oninput = (e) => wall?.choose(undefined, e.target.value.trim().toLowerCase());
$('select').onclick = () => {
  const on = root.classList.toggle('selecting');
  $('select').ariaPressed = String(on);
  if (!on) wall?.all('clear');
};
$('prompt').onkeydown = (e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey) && !e.repeat) $('create').requestSubmit(); };
$('picked').onclick = (e) => { const { all } = e.target.dataset; if (all) wall?.all(all); };
$('filter').onchange = (e) => wall?.choose(e.target.value);
$('more').onclick = async () => {
  $('more').disabled = true;
  await wall.older().catch((e) => wall.line('refused', e.message));
  $('more').disabled = false;
};

$('create').onsubmit = async (e) => {
  e.preventDefault();
  const form = e.target;
  const button = form.querySelector('[type=submit]');
  if (button.disabled) return; // requestSubmit does not look at it
  const data = new FormData(form);
  for (const [name, value] of [...data]) if (value === '' || value.size === 0) data.delete(name);
  button.disabled = true;
  show($('refused'), false);
  try {
    const job = await wall.gateway.create(data);
    wall.add(job);
    $('prompt').value = '';
    $('reference').value = '';
    put($('reference-name'), '');
  } catch (problem) {
    put($('refused'), problem.message);
    show($('refused'), true);
  } finally {
    button.disabled = false;
  }
};

addEventListener('pagehide', () => wall?.feed.close());
addEventListener('pageshow', (e) => { if (e.persisted) open(sessionStorage.getItem(keyName)); });
open(sessionStorage.getItem(keyName));
