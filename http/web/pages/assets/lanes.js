// The lanes of the page /flow. A lane is a provider and each row in it a place. Requests wait at the left, pass the
// bright line and grow to the right while they run: the part at the line is the present phase, and the far end is the
// beginning. An ended request drifts away. The socket brings what changed; the browser's clock moves it in between.
//
// The lanes are drawn on canvases: 9,500 requests take 5 ms of a frame there and 142 ms as elements of an SVG, in
// headless Chromium on two busy cores.

const SPAN = 32_000; // milliseconds in the picture
const QUEUE = 66;
const LINE = 3;
const BACK = 700; // the picture is behind by more than the pace of the messages, so that no bar jumps
const FRAME = 48;
const MOST_ROWS = 240; // pixels of a lane with many places
const MOST_LANES = 12;
const KEPT = 4000; // ended requests of a lane
const kinds = { queued: 'queue', waiting: 'wait', replying: 'reply', in_progress: 'reply', resting: 'retry', failed: 'failed' };
const still = matchMedia('(prefers-reduced-motion: reduce)');
const SVG = 'http://www.w3.org/2000/svg';

// spark draws numbers as a line with an area below it.
export function spark(svg, values) {
  for (const name of svg.firstChild ? [] : ['area', 'line']) {
    const path = document.createElementNS(SVG, 'path');
    path.setAttribute('class', name);
    svg.append(path);
  }
  const top = Math.max(...values, 1);
  const line = values.map((v, i) => `${i ? 'L' : 'M'}${(100 - (values.length - 1 - i) * 100 / 59).toFixed(1)} ${(23 - v / top * 22).toFixed(1)}`).join('');
  const left = (100 - (values.length - 1) * 100 / 59).toFixed(1);
  svg.firstChild.setAttribute('d', line && `${line}L100 24L${left} 24z`);
  svg.lastChild.setAttribute('d', line);
}

// state of a request: its part now, and since when it has a place.
const phase = (r) => r.phases.at(-1);
const ended = (r) => phase(r) === 'ended';
const placed = (r) => r.phases.some((p) => p !== 'starting' && p !== 'queued' && p !== 'ended');
const waits = (r) => !placed(r) && phase(r) === 'queued';

class Lane {
  constructor(make, name) {
    this.name = name;
    this.rows = [];
    this.low = 0; // no row below is free
    this.past = [];
    this.queue = new Set();
    this.needed = 4;
    this.sub = make('span', { class: 'sub' });
    this.count = make('span', { class: 'sub num' });
    this.dot = make('span', { class: 'dot' });
    this.title = make('button', { type: 'button', class: 'link', title: `Only ${name}` }, make('bdi', {}, name));
    this.canvas = make('canvas', { role: 'img', 'aria-label': `Requests to ${name}, newest on the left` });
    this.rate = make('b', { class: 'num' }, '0');
    this.spark = document.createElementNS(SVG, 'svg');
    for (const [k, v] of Object.entries({ class: 'spark reply', viewBox: '0 0 100 24', preserveAspectRatio: 'none', 'aria-hidden': 'true' })) this.spark.setAttribute(k, v);
    this.element = make('div', { class: 'lane' }, make('div', { class: 'lane-name' }, make('span', { class: 'row-link' }, this.dot, this.title), this.sub, this.count),
      make('div', { class: 'lane-stage' }, this.canvas), make('div', { class: 'lane-rate' }, this.rate, make('span', { class: 'sub' }, 'tok/s'), this.spark));
    this.pen = this.canvas.getContext('2d');
  }

  take(r) {
    while (this.rows[this.low]) this.low++;
    r.row = this.low;
    this.rows[this.low] = r;
    this.needed = Math.max(this.needed, this.low + 1);
  }

  // drop lets a request go; an ended one drifts away.
  drop(r) {
    this.queue.delete(r);
    if (this.rows[r.row] !== r) return;
    this.rows[r.row] = undefined;
    this.low = Math.min(this.low, r.row);
    if (!ended(r)) return;
    this.past.push(r);
    if (this.past.length > KEPT) this.past.splice(0, this.past.length - KEPT);
  }

  put(r) {
    if (waits(r)) this.queue.add(r);
    else if (placed(r)) {
      this.queue.delete(r);
      if (r.row === undefined) this.take(r);
    }
    if (ended(r)) this.drop(r);
  }

  // forget drops what has left the picture, and rows that were not needed for a while.
  forget(now) {
    const kept = this.past.filter((r) => now - r.began_ms - r.at.at(-1) < SPAN);
    if (kept.length !== this.past.length) this.past = kept;
    let most = 3;
    for (let i = this.rows.length; i-- > 0;) if (this.rows[i]) { most = i; break; }
    this.rows.length = Math.min(this.rows.length, most + 1);
    for (const r of this.past) most = Math.max(most, r.row);
    this.needed = most + 1;
  }

  size(width, ratio) {
    const places = this.places && this.places <= 1000 ? Math.max(this.places, this.needed) : this.needed;
    this.pitch = places <= 24 ? 10 : places * 5 <= MOST_ROWS ? 5 : MOST_ROWS / places;
    this.row = this.pitch === 10 ? 7 : this.pitch === 5 ? 4 : Math.min(1 / ratio, this.pitch * 3);
    const height = Math.round(places * this.pitch - (this.pitch >= 5 ? this.pitch - this.row : 0));
    if (this.width === width && this.height === height && this.ratio === ratio) return;
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
  }

  // draw draws the lane at an instant; fits says which requests are not dimmed.
  draw(at, colors, fits) {
    const { pen, width, height, pitch, row } = this;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const x0 = QUEUE + LINE;
    const scale = (width - x0) / SPAN;
    pen.fillStyle = colors.rail;
    if (pitch < 5) pen.fillRect(x0, 0, width - x0, height);
    else for (let y = 0; y < height; y += pitch) pen.fillRect(x0, y, width - x0, row);
    const round = pitch >= 5 && this.past.length + this.rows.length < 600;
    let color;
    const bar = (kind, from, to, y, live) => {
      const right = Math.min(at - from, SPAN) * scale;
      const left = Math.max(at - to, 0) * scale;
      if (right <= left) return;
      if (color !== kind) pen.fillStyle = colors[color = kind];
      const w = Math.max(right - left - (live ? 0 : 0.8), 0.5);
      if (!round) { pen.fillRect(x0 + left, y, w, row); return; }
      pen.beginPath();
      pen.roundRect(x0 + left, y, w, row, 2);
      pen.fill();
    };
    const request = (r, live) => {
      const end = live ? at : r.began_ms + r.at.at(-1);
      if (at - end > SPAN) return;
      pen.globalAlpha = fits(r) ? (live ? 1 : 0.38) : 0.1;
      const y = r.row * pitch;
      let running = false;
      for (let i = 0; i < r.phases.length; i++) {
        const name = r.phases[i];
        running ||= name !== 'starting' && name !== 'queued';
        if (!running || name === 'ended') continue;
        const last = i + 1 >= r.phases.length;
        const to = last ? end : r.began_ms + r.at[i + 1];
        const failure = r.failed && (last || r.phases[i + 1] === 'ended');
        bar(kinds[name] ?? 'wait', r.began_ms + r.at[i], failure ? to - 300 : to, y, live && last);
        if (failure) bar('failed', Math.max(to - 300, r.began_ms + r.at[i]), to, y, false);
      }
    };
    for (const r of this.past) request(r, false);
    for (const r of this.rows) if (r) request(r, true);
    const per = Math.max(1, Math.floor((height + 3) / 10));
    const most = per * 5;
    let i = 0;
    pen.fillStyle = colors.queue;
    for (const r of this.queue) {
      if (i >= most) break;
      pen.globalAlpha = fits(r) ? 1 : 0.1;
      pen.fillRect(QUEUE - 14 - Math.floor(i / per) * 12, i++ % per * 10, 9, 7);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colors.line;
    pen.fillRect(QUEUE, 0, LINE, height);
  }

  // find returns the request that is drawn at a place of the canvas.
  find(x, y, at) {
    if (x < QUEUE) {
      const per = Math.max(1, Math.floor((this.height + 3) / 10));
      return [...this.queue][Math.floor((QUEUE - 5 - x) / 12) * per + Math.floor(y / 10)];
    }
    const row = Math.floor(y / this.pitch);
    const when = at - (x - QUEUE - LINE) / (this.width - QUEUE - LINE) * SPAN;
    const has = (r) => r && r.row === row && r.began_ms <= when + 400 && (!ended(r) || r.began_ms + r.at.at(-1) >= when - 400);
    return has(this.rows[row]) ? this.rows[row] : this.past.findLast(has);
  }
}

// Lanes draws into the card root. make makes elements, choose filters by the fields of a request, endButton returns the
// button that ends one, and time writes milliseconds.
export class Lanes {
  constructor(root, { make, choose, endButton, time }) {
    Object.assign(this, { root, make, choose, endButton, time });
    this.list = root.querySelector('#lanes-list');
    this.tip = root.querySelector('#tip');
    this.picked = root.querySelector('#picked');
    this.rest = root.querySelector('#lanes-rest');
    this.lanes = new Map();
    this.requests = new Map();
    this.fits = () => true;
    this.drawn = 0;
    this.frames = [];
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) matchMedia(query).addEventListener('change', () => this.paint());
    new MutationObserver(() => this.paint()).observe(document.documentElement, { attributeFilter: ['data-theme'] });
    this.paint();
    root.addEventListener('pointermove', (e) => this.hover(e));
    root.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    root.addEventListener('click', (e) => { const r = this.under(e); if (r) this.pick(r); });
    root.addEventListener('keydown', (e) => { if (e.key === 'Escape') this.picked.hidden = true; });
    requestAnimationFrame((now) => this.frame(now));
  }

  // paint reads the colours of the theme from the legend. The next frame draws with them, however rare frames are.
  paint() {
    const read = (e) => getComputedStyle(e).backgroundColor;
    this.colors = Object.fromEntries(['queue', 'wait', 'reply', 'retry', 'failed', 'line', 'rail'].map((name) => [name, read(this.root.querySelector(`.legend .${name}`))]));
    this.drawn = -Infinity;
  }

  // hear takes a message of the socket.
  hear(m) {
    const ahead = m.at_ms - performance.now();
    if (m.whole) {
      this.requests.clear();
      for (const lane of this.lanes.values()) lane.element.remove();
      this.lanes.clear();
      this.ahead = ahead;
    }
    this.ahead = Math.max(this.ahead, ahead); // the fastest message says most of the gateway's clock
    for (const l of m.lanes) {
      const lane = this.lane(l.provider);
      Object.assign(lane, { places: l.places, inFlight: l.in_flight });
      const running = l.in_flight - l.queued;
      lane.sub.textContent = l.on ? `${l.state} on ${l.on}` : l.state;
      lane.dot.className = `dot ${{ serving: 'good', failing: 'bad', restarting: 'bad' }[l.state] ?? 'warm'}`;
      const figure = (n) => this.make('b', {}, n.toLocaleString('en'));
      lane.count.replaceChildren(figure(running), `${l.places ? ` of ${l.places.toLocaleString('en')}` : ''} · `, figure(l.queued), ' queued');
      lane.rate.textContent = l.tokens_per_second.toLocaleString('en');
    }
    for (const n of m.gone) {
      const r = this.requests.get(n);
      this.requests.delete(n);
      if (r) this.lanes.get(r.lane)?.drop(r);
    }
    for (const b of m.bars.sort((a, c) => a.began_ms - c.began_ms)) {
      let r = this.requests.get(b.n);
      if (r && r.lane !== b.lane) { // tried at another provider now
        this.lanes.get(r.lane)?.drop(r);
        r.row = undefined;
      }
      r = Object.assign(r ?? {}, b);
      if (ended(r)) this.requests.delete(r.n);
      else this.requests.set(r.n, r);
      this.lane(r.lane).put(r);
    }
    if (m.samples.length) for (const lane of this.lanes.values()) spark(lane.spark, m.samples.map((s) => s.providers[lane.name] ?? 0));
    this.arrange(m);
  }

  lane(name) {
    let lane = this.lanes.get(name);
    if (!lane) {
      lane = new Lane(this.make, name);
      lane.title.addEventListener('click', () => this.choose('provider', name));
      this.lanes.set(name, lane);
      this.list.append(lane.element);
    }
    return lane;
  }

  // arrange removes lanes of providers that are gone, and hides those that do least if there are too many.
  arrange(m) {
    for (const [name, lane] of this.lanes) {
      if (m.lanes.some((l) => l.provider === name) || lane.rows.some(Boolean) || lane.past.length) continue;
      lane.element.remove();
      this.lanes.delete(name);
    }
    const busy = [...this.lanes.values()].sort((a, b) => (b.inFlight ?? 0) - (a.inFlight ?? 0));
    busy.forEach((lane, i) => { lane.element.hidden = i >= MOST_LANES; });
    const hidden = Math.max(0, busy.length - MOST_LANES);
    this.rest.textContent = [hidden ? `${hidden} more providers do less.` : '', m.more ? `${m.more.toLocaleString('en')} more requests are in flight.` : ''].filter(Boolean).join(' ');
    this.rest.hidden = !this.rest.textContent;
  }

  get now() { return this.held ?? performance.now() + this.ahead - BACK; }

  // hold stops the picture, go lets it move again.
  hold() { if (this.ahead !== undefined) this.held ??= this.now; }
  go() { this.held = undefined; }

  frame(now) {
    requestAnimationFrame((next) => this.frame(next));
    if (this.ahead === undefined || document.hidden || now - this.drawn < (still.matches ? 2000 : FRAME)) return;
    this.drawn = now;
    this.draw();
  }

  draw() {
    const begin = performance.now();
    const at = this.now;
    const shown = [...this.lanes.values()].filter((lane) => !lane.element.hidden);
    const widths = shown.map((lane) => lane.canvas.clientWidth); // read together: writing between would lay out again
    shown.forEach((lane, i) => {
      if (this.held === undefined) lane.forget(at);
      lane.size(widths[i], devicePixelRatio);
      lane.draw(at, this.colors, this.fits);
    });
    this.frames.push(performance.now() - begin);
    if (this.frames.length > 200) this.frames.shift();
  }

  under(event) {
    for (const lane of this.lanes.values()) {
      if (lane.canvas !== event.target) continue;
      const box = lane.canvas.getBoundingClientRect();
      return lane.find(event.clientX - box.left, event.clientY - box.top, this.now);
    }
    return undefined;
  }

  hover(event) {
    const r = this.under(event);
    this.tip.hidden = !r;
    if (!r) return;
    const text = ended(r) ? (r.failed ? 'failed' : 'done') : phase(r).replace('_', ' ');
    const took = ended(r) ? r.at.at(-1) : this.now - r.began_ms;
    this.tip.replaceChildren(this.make('b', {}, names(r)), `${r.model}, ${text}`, this.make('br'), this.time(Math.max(took, 0)) + (ended(r) ? `, ${r.tokens.toLocaleString('en')} tokens` : ''));
    const box = this.root.getBoundingClientRect();
    this.tip.style.left = `${Math.max(0, Math.min(event.clientX - box.left + 14, box.width - 270))}px`;
    this.tip.style.top = `${event.clientY - box.top + 16}px`;
  }

  // pick shows what can be done with a request: filter by each of its names, look at it, end it.
  pick(r) {
    const filter = (field, value, label = value) => value && this.make('button', { type: 'button', class: 'small', 'data-field': field }, `Only ${label}`);
    const parts = [this.make('strong', {}, this.make('bdi', {}, names(r))), filter('user', r.user), filter('key', r.key, r.key_name || r.key), filter('model', r.model), filter('provider', r.lane),
      this.make('a', { class: 'button small', href: `/flow/requests/${encodeURIComponent(r.id)}${r.node ? `?node=${encodeURIComponent(r.node)}` : ''}` }, 'Open'), !ended(r) && this.endButton(r)].filter(Boolean);
    for (const p of parts) if (p.dataset.field) p.onclick = () => this.choose(p.dataset.field, { user: r.user, key: r.key, model: r.model, provider: r.lane }[p.dataset.field]);
    const close = this.make('button', { type: 'button', class: 'small' }, 'Close');
    close.onclick = () => { this.picked.hidden = true; };
    this.picked.replaceChildren(...parts, close);
    this.picked.hidden = false;
    this.tip.hidden = true;
  }
}

// names says whose a request is: its user and the name of its key.
export const names = (r) => [r.user, r.key_name || (r.user ? '' : r.key)].filter(Boolean).join(' · ') || 'no key';
