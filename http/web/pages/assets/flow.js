// The pages /flow, /flow/requests/… and /flow/actors: what the
// gateway does at the moment.
//
//   Feed    hears the view over a WebSocket, a few times a second at most; rests while
//           the tab is hidden, and reconnects by itself
//   Table   rows by id: one that is still there keeps its place in the document, and
//           only cells that changed are touched
//   show    one function per view, drawn once a frame
//
//   Lanes   the moving picture of the requests in flight (lanes.js)
//
// Text from requests reaches the page as text, never as HTML.

import { Lanes, names, spark } from './lanes.js';

const root = document.getElementById('flow');
const $ = (id) => document.getElementById(id);
const view = root.dataset.view;

const firstPause = 500;
const longPause = 15_000;
const silence = 75_000; // pings come every 30 s and do not reach a script: a look is asked for again then

// line says how the page is connected. It is read out only when that changes.
const words = { live: 'live', lost: 'connection lost, coming back', paused: 'paused', refused: 'signed out: reload the page' };
let state = '';
let lanes; // on the page of all requests
function line(next) {
  if (next === state) return;
  state = next;
  root.classList.toggle('stopped', next !== 'live');
  if (next === 'live' && $('pause')?.getAttribute('aria-pressed') !== 'true') lanes?.go();
  else lanes?.hold();
  const e = $('line');
  e.className = `tag ${next === 'live' ? 'live' : 'lost'}`;
  e.textContent = words[next];
}

class Feed {
  constructor(wish, hear) {
    this.wish = wish;
    this.hear = hear;
    this.failures = 0;
    document.addEventListener('visibilitychange', () => (document.hidden ? this.rest() : this.open()));
    addEventListener('online', () => this.open());
    this.open();
  }

  // watch says what is wished for, again if it has changed.
  watch() {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type: 'watch', ...this.wish() }));
  }

  rest() {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
    line('paused');
  }

  open() {
    if (this.socket || document.hidden) return;
    clearTimeout(this.timer);
    const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/flow/socket`);
    this.socket = socket;
    socket.onopen = () => this.watch();
    socket.onmessage = (e) => {
      this.failures = 0;
      line('live');
      clearTimeout(this.silence);
      this.silence = setTimeout(() => this.watch(), silence);
      this.hear(JSON.parse(e.data));
    };
    socket.onclose = (e) => {
      clearTimeout(this.silence);
      if (this.socket !== socket) return; // it rests
      this.socket = undefined;
      if (e.code === 1008) {
        line('refused');
        return;
      }
      line('lost');
      const pause = Math.min(firstPause * 2 ** this.failures++, longPause);
      this.timer = setTimeout(() => this.open(), pause / 2 + Math.random() * pause / 2);
    };
  }
}

// Words for numbers.
const whole = new Intl.NumberFormat('en');
const count = (n) => whole.format(n);
function time(ms) {
  if (ms > 0 && ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 && ms % 1 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor(s / 60 % 60)} min`;
}
const dollars = (n) => `$${n >= 100 ? count(Math.round(n)) : n.toFixed(n && n < 1 ? 4 : 2)}`;
const clock = (t) => new Date(t).toLocaleTimeString('en-GB');
// since is a day, or the time if that is today.
const since = (t) => { const d = new Date(t); return d.toDateString() === new Date().toDateString() ? clock(t) : d.toLocaleDateString('en-GB'); };
const moment = (t) => new Date(t).toLocaleString('en-GB');

function set(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// make makes an element: make('td', { class: 'x' }, 'text' or elements...).
function make(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) {
    if (v === true) e.setAttribute(k, '');
    else if (v !== false && v !== undefined) e.setAttribute(k, v);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null));
  return e;
}

// same keeps what is in e while text says that it is the same.
function same(e, text, children) {
  if (e.dataset.shows === text) return false;
  e.dataset.shows = text;
  e.replaceChildren(...children());
  return true;
}

class Table {
  // columns: { label, number?, text(item), node?(item, cell) }. node fills a cell
  // whose text says that it has changed.
  constructor(table, columns) {
    this.body = table.tBodies[0];
    this.columns = columns;
    this.rows = new Map();
  }

  show(items, id) {
    const left = new Map(this.rows);
    let before = this.body.firstElementChild;
    for (const item of items) {
      const key = id(item);
      let row = this.rows.get(key);
      if (!row) {
        row = this.row();
        this.rows.set(key, row);
      }
      left.delete(key);
      this.fill(row, item);
      if (row === before) before = before.nextElementSibling;
      else this.body.insertBefore(row, before);
    }
    for (const [key, row] of left) {
      if (row.contains(document.activeElement)) this.step(row, left);
      row.remove();
      this.rows.delete(key);
    }
  }

  // step moves the focus from a row that goes to the nearest one that stays. It goes to
  // the link: a button there would end another request.
  step(row, going) {
    const gone = new Set(going.values());
    const next = (from, way) => { let r = from; do r = r[way]; while (r && gone.has(r)); return r; };
    const to = next(row, 'nextElementSibling') ?? next(row, 'previousElementSibling');
    (to?.querySelector('a') ?? this.body.closest('[tabindex]'))?.focus({ preventScroll: true });
  }

  row() {
    const row = document.createElement('tr');
    this.columns.forEach((c, i) => row.append(i ? make('td', { 'data-label': c.label, class: c.number && 'number' }) : make('th', { scope: 'row' })));
    return row;
  }

  fill(row, item) {
    this.columns.forEach((c, i) => {
      const cell = row.cells[i];
      const text = c.text(item);
      if (c.node) same(cell, text, () => c.node(item));
      else set(cell, text);
    });
  }
}

const tag = (name, text = name) => make('span', { class: `tag ${name}` }, text);

// phaseTag shows the phase of a request, place its position or progress in that.
const phaseTag = (r) => tag(r.phase, r.phase.replace('_', ' '));
function place(r) {
  const text = r.queue_position ? ` position ${r.queue_position}` : r.progress ? ` ${r.progress} %` : '';
  return text && make('span', { class: 'place' }, text);
}

// post sends a form of the page. The answer is a page, which is not read.
async function post(path) {
  const body = new URLSearchParams({ token: root.dataset.token });
  const response = await fetch(path, { method: 'POST', body, redirect: 'manual' });
  if (response.type !== 'opaqueredirect' && !response.ok && response.status !== 409) line('refused');
}

// Several gateways can have requests with one id.
const requestPath = (r, what = '') => `/flow/requests/${encodeURIComponent(r.id)}${what}${r.node ? `?node=${encodeURIComponent(r.node)}` : ''}`;

// The name of whose request it is leads to the request.
const userColumn = { label: 'User', text: (r) => `${r.id} ${names(r)} ${r.node}`, node: (r) => {
  const [first, second] = names(r).split(' · ');
  return [make('a', { href: requestPath(r), title: r.id }, make('bdi', {}, first), second && make('bdi', { class: 'quiet' }, ` ${second}`)), r.node && make('span', { class: 'place' }, ` ${r.node}`)].filter(Boolean);
} };
const rowID = (r) => `${r.node} ${r.id}`;
const nodeText = (n) => `${n.node}: ${n.answers ? `${count(n.in_flight)} in flight` : 'does not answer'}`;
const modelColumn = { label: 'Model', text: (r) => r.model, node: (r) => [make('bdi', { title: r.model === r.upstream_model || !r.upstream_model ? r.model : `${r.model} → ${r.upstream_model}` }, r.model)] };
const providerText = (r) => (r.attempts > 1 ? `${r.provider} (try ${r.attempts})` : r.provider);
const providerColumn = { label: 'Provider', text: providerText, node: (r) => [make('bdi', { title: providerText(r) }, providerText(r))] };

// end asks for a second click before it ends a request.
function endButton(r) {
  const button = make('button', { type: 'button', 'aria-label': `End request ${r.id}` }, 'End');
  let timer;
  button.onclick = () => {
    if (button.classList.contains('sure')) {
      button.disabled = true;
      post(requestPath(r, '/cancel'));
      return;
    }
    button.classList.add('sure');
    button.textContent = 'Sure?';
    timer ??= setTimeout(() => {
      timer = undefined;
      button.classList.remove('sure');
      button.textContent = 'End';
    }, 3000);
  };
  return button;
}

const figures = (values) => {
  for (const [name, text] of Object.entries(values)) set($('load').querySelector(`[data-figure="${name}"]`), text);
};

const shown = 20; // ended requests
const ago = (t) => { const s = (Date.now() - new Date(t)) / 1000; return s < 60 ? 'less than a minute ago' : s < 3600 ? `${Math.floor(s / 60)} min ago` : s < 86400 ? `${Math.floor(s / 3600)} h ago` : `on ${moment(t)}`; };

function requestsView() {
  const form = $('filter');
  const active = new Table($('active'), [
    userColumn, modelColumn, providerColumn,
    { label: 'Phase', text: (r) => `${r.phase} ${r.queue_position ?? ''} ${r.progress ?? ''}`, node: (r) => [phaseTag(r), place(r)].filter(Boolean) },
    { label: 'Tokens', number: true, text: (r) => (r.output_tokens ? count(r.output_tokens) : '–') },
    { label: 'tok/s', number: true, text: (r) => (r.tokens_per_second ? count(r.tokens_per_second) : '–') },
    { label: 'Age', number: true, text: (r) => time(r.duration_ms) },
    { label: '', number: true, text: () => 'end', node: (r) => [endButton(r)] },
  ]);
  const recent = new Table($('recent'), [
    userColumn,
    { label: 'Result', text: (r) => `${r.result.status} ${r.result.code} ${ending(r.result)}`,
      node: (r) => (r.result.status ? [tag('failed', String(r.result.status)), make('span', { title: r.result.code }, ` ${r.result.code}`)] : [tag('ok', 'OK'), ` ${ending(r.result)}`]) },
    modelColumn, providerColumn,
    { label: 'Tokens', number: true, text: (r) => (r.progress === null ? count(r.output_tokens) : '–') },
    { label: 'First token', number: true, text: (r) => (r.first_ms === null ? '–' : time(r.first_ms)) },
    { label: 'Time', number: true, text: (r) => time(r.duration_ms) },
    { label: 'Began', number: true, text: (r) => clock(r.started) },
  ]);

  // The filter is in the address, so that it can be kept and sent.
  const fields = ['text', 'phase', 'provider', 'model', 'user', 'key', 'sort'];
  const asked = new URLSearchParams(location.search);
  for (const name of fields) if (asked.get(name)) form.elements[name].value = asked.get(name);
  $('filters').open = fields.slice(1, -1).some((name) => asked.get(name));
  $('failed').checked = asked.has('failed');
  const filter = () => {
    const f = Object.fromEntries(fields.map((name) => [name, form.elements[name].value.trim()]).filter(([, v]) => v));
    if ($('failed').checked) f.failed = true;
    return f;
  };
  let timer;
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const f = new URLSearchParams(filter());
      if (f.get('sort') === 'age') f.delete('sort');
      history.replaceState(null, '', f.size ? `?${f}` : location.pathname);
      dim();
      feed.watch();
    }, 200);
  };
  // What does not match is dimmed in the lanes, so that the picture keeps its form.
  const dim = () => {
    const f = filter();
    const words = (f.text ?? '').toLowerCase().split(/\s+/);
    const has = (r) => { const all = [r.user, r.key, r.key_name, r.model, r.lane].map((s) => s.toLowerCase()); return words.every((w) => all.some((s) => s.includes(w))); };
    lanes.fits = (r) => (!f.phase || r.phases.at(-1) === f.phase) && (!f.provider || r.lane === f.provider) && (!f.model || r.model.includes(f.model)) && (!f.user || r.user === f.user) && (!f.key || r.key === f.key) && (!f.text || has(r));
  };
  const choose = (field, value) => {
    form.elements[field].value = form.elements[field].value === value ? '' : value; // a second click takes it back
    $('filters').open = true;
    changed();
  };
  lanes = new Lanes($('lanes'), { make, choose, endButton, time });
  dim();
  const pause = $('pause');
  const paused = () => pause.getAttribute('aria-pressed') === 'true';
  pause.onclick = () => {
    pause.setAttribute('aria-pressed', String(!paused()));
    pause.textContent = paused() ? 'Resume' : 'Pause';
    if (paused()) lanes.hold();
    else lanes.go();
  };
  const record = (samples) => {
    // The failures of a minute, in per cent of what ended then.
    const failed = samples.map((s, i) => { const b = samples[Math.max(0, i - 12)]; return s.ended > b.ended ? 100 * (s.failed - b.failed) / (s.ended - b.ended) : 0; });
    // The cost of a minute, for an hour. The figure is that of all samples, because dear requests are rare.
    const hourly = (a, b, n) => (n ? Math.max(0, b.charged - a.charged) * 720 / n : 0);
    const cost = samples.map((s, i) => hourly(samples[Math.max(0, i - 12)], s, Math.min(i, 12)));
    const last = samples.at(-1);
    figures({ first: last.first_ms ? time(last.first_ms) : '–', failed: `${failed.at(-1).toFixed(1)} %`, cost: dollars(hourly(samples[0], last, samples.length - 1) / 1e6) });
    const series = { in_flight: samples.map((s) => s.in_flight), queued: samples.map((s) => s.queued), tokens_per_second: samples.map((s) => s.tokens_per_second),
      first: samples.map((s) => s.first_ms), failed, cost };
    for (const [name, values] of Object.entries(series)) spark($('load').querySelector(`[data-spark="${name}"]`), values);
  };
  for (const e of form.elements) e.addEventListener('input', changed); // some stand outside of the form
  form.addEventListener('submit', (e) => { e.preventDefault(); changed(); });

  const show = ({ active: { load, matching, data }, recent: ended }) => {
    if (paused()) return;
    figures({ in_flight: count(load.in_flight), queued: count(load.phases.queued), tokens_per_second: count(load.tokens_per_second) });
    set($('matching'), matching > data.length ? `${count(data.length)} of ${count(matching)}` : matching ? count(matching) : '');
    same($('providers'), load.providers.map((p) => p.provider).join(' '), () => load.providers.map((p) => make('option', { value: p.provider })));
    $('nodes').hidden = !load.nodes.length;
    set($('nodes'), load.nodes.map(nodeText).join(' · '));
    active.show(data, rowID);
    recent.show(ended.slice(0, shown), rowID);
    $('active-rows').hidden = !data.length;
    $('active-none').hidden = !!data.length;
    set($('active-none'), matching || load.in_flight ? 'No request matches.' : ended.length ? `Quiet. The last request began ${ago(ended[0].started)}.` : 'Quiet. No request yet.');
    $('recent').hidden = !ended.length;
    $('recent-none').hidden = !!ended.length;
  };
  const hear = (m) => {
    lanes.hear(m);
    if (m.samples.length && !paused()) record(m.samples);
  };
  return { show, hear, wish: () => ({ view, lanes: true, filter: filter() }) };
}

// ending says why a reply ended, in the words of the list of requests.
const endings = { stop: 'end of turn', length: 'length limit', tool_calls: 'tool call' };
const ending = (result) => endings[result.reason] ?? result.reason;

const fact = (name, value, attributes = {}) => (value === '' || value === null || value === undefined ? [] : [make('div', attributes, make('dt', {}, name), make('dd', {}, value))]);

function facts(r) {
  const result = r.result;
  return [
    ...fact('Phase', result ? (result.status ? tag('failed', `${result.status} ${result.code}`) : tag('ok', ['OK', ending(result)].filter(Boolean).join(', '))) : phaseTag(r)),
    ...fact('Place in the queue', r.queue_position && String(r.queue_position)),
    ...fact('Made', r.progress === null ? '' : `${r.progress} %`),
    ...fact('Time', time(r.duration_ms)), ...fact('First token after', r.first_ms === null ? '' : time(r.first_ms)),
    ...fact('Queued', result && result.queued_ms ? time(result.queued_ms) : ''),
    ...fact('Tokens out', r.progress === null ? count(r.output_tokens) : ''), ...fact('Tokens in', r.input_tokens ? count(r.input_tokens) : ''),
    ...fact('Tokens per second', r.tokens_per_second ? count(r.tokens_per_second) : ''),
    ...fact('Model', r.model), ...fact('Upstream model', r.upstream_model === r.model ? '' : r.upstream_model),
    ...fact('Gateway', r.node), ...fact('Provider', r.provider), ...fact('Attempts', r.attempts > 1 ? String(r.attempts) : ''),
    ...fact('Client speaks', r.shape + (r.stream ? ', streamed' : '') + (r.background ? ', in the background' : '') + (result?.untouched ? ', passed untouched' : '')),
    ...fact('User', r.user && make('a', { href: `/flow?user=${encodeURIComponent(r.user)}` }, r.user)),
    ...fact('Key', r.key && make('a', { href: `/flow?key=${encodeURIComponent(r.key)}` }, r.key_name || r.key)), ...fact('Began', moment(r.started)),
    ...fact('Degraded', result?.degraded), ...fact('Losses', result?.losses), ...fact('Trace', r.trace && make('code', {}, r.trace), { class: 'long' }),
  ];
}

// The waterfall: one lane for the phases, one for every span, on one scale.
function waterfall(r) {
  const end = Math.max(r.duration_ms * 1000, 1, ...r.spans.map((s) => s.at_us + s.took_us));
  const begin = Math.min(0, ...r.spans.map((s) => s.at_us));
  const x = (us) => 100 * (us - begin) / (end - begin);
  const part = (kind, from, to, title, failed) => {
    const e = make('span', { class: `bar-part ${kind}${failed ? ' failed' : ''}`, title });
    e.style.left = `${x(from)}%`;
    e.style.width = `${x(to) - x(from)}%`;
    return e;
  };
  const out = [];

  const steps = r.steps.filter((s) => s.phase !== 'ended');
  const phases = steps.map((s, i) => {
    const to = r.steps[i + 1]?.at_us ?? end;
    return part(s.phase, s.at_us, to, `${s.phase}${s.attempt > 1 ? `, attempt ${s.attempt}` : ''}: ${time((to - s.at_us) / 1000)}`);
  });
  out.push(make('li', {}, make('div', { class: 'plain' }, make('span', { class: 'name' }, 'phases'),
    make('span', { class: 'lane', role: 'img', 'aria-label': phases.map((p) => p.title).join('; ') }, ...phases), make('span', { class: 'took' }, time(r.duration_ms)))));

  const children = Map.groupBy(r.spans, (s) => (r.spans.some((o) => o.id === s.parent) ? s.parent : ''));
  const add = (s, depth) => {
    const first = s.events.find((e) => e.name === 'gen_ai.first_token');
    const parts = s.kind === 'client'
      ? (first ? [part('call', s.at_us, first.at_us, 'until the first token', s.failed), part('replying', first.at_us, s.at_us + s.took_us, 'reply', s.failed)]
        : [part('call', s.at_us, s.at_us + s.took_us, s.name, s.failed)])
      : [part(s.name === 'queue' ? 'wait' : 'own', s.at_us, s.at_us + s.took_us, s.name, s.failed)];
    const ticks = s.events.filter((e) => e !== first).map((e) => {
      const t = make('span', { class: 'tick', title: `${e.name} after ${time(e.at_us / 1000)}` });
      t.style.left = `${x(e.at_us)}%`;
      return t;
    });
    const name = make('span', { class: 'name' }, s.name);
    name.style.paddingLeft = `${depth * 0.9}rem`;
    const known = [...s.attributes.map((a) => `${a.name}: ${a.value}`), ...s.events.map((e) => `${e.name} after ${time(e.at_us / 1000)}`)];
    if (s.failed) known.unshift(`failed${s.failure ? `: ${s.failure}` : ''}`);
    const summary = make('summary', {}, name, make('span', { class: 'lane' }, ...parts, ...ticks), make('span', { class: 'took' }, time(s.took_us / 1000)));
    out.push(make('li', {}, make('details', { 'data-span': s.id }, summary, make('pre', { class: 'detail' }, known.join('\n') || 'no attributes'))));
    for (const c of (children.get(s.id) ?? []).sort((a, b) => a.at_us - b.at_us)) add(c, depth + 1);
  };
  for (const s of (children.get('') ?? []).sort((a, b) => a.at_us - b.at_us || b.took_us - a.took_us)) add(s, 0);
  return out;
}

// refresh puts what changed into a list of facts: the rest stays, with whatever of it
// is focused or selected.
function refresh(list, next) {
  next.forEach((e, i) => {
    const before = list.children[i];
    if (!before) list.append(e);
    else if (!before.isEqualNode(e)) before.replaceWith(e);
  });
  while (list.children.length > next.length) list.lastElementChild.remove();
}

function requestView() {
  const show = ({ request: r }) => {
    $('gone').hidden = !!r;
    $('end').hidden = !r || !!r.result;
    if (!r) return;
    refresh($('facts'), facts(r));
    $('nospans').hidden = r.trace !== '' || r.progress !== null;
    const list = $('waterfall');
    const open = new Set([...list.querySelectorAll('details[open]')].map((d) => d.dataset.span));
    const focused = document.activeElement?.closest('[data-span]')?.dataset.span;
    list.replaceChildren(...waterfall(r));
    for (const d of list.querySelectorAll('details')) {
      if (open.has(d.dataset.span)) d.open = true;
      if (focused === d.dataset.span) d.firstElementChild.focus();
    }
  };
  return { show, wish: () => ({ view, id: root.dataset.id, node: root.dataset.node }) };
}

const failureText = (f) => (f ? `${moment(f.at)}: ${f.reason} (${f.message})` : '');

function actorsView() {
  // A mailbox is drawn as eight places.
  const mailbox = (depth) => make('span', { class: 'mailbox', 'aria-hidden': 'true' },
    ...Array.from({ length: 8 }, (_, i) => make('i', { class: i < depth ? 'full' : '' })));
  const branch = (actors, parent) => {
    const children = actors.filter((a) => a.parent === parent);
    return children.length ? [make('ul', {}, ...children.map((a) => make('li', {},
      make('div', { class: `card node${a.last_failure ? ' bad' : a.depth > 3 ? ' warm' : ''}`, title: `${a.id}, since ${moment(a.started)}` },
        make('b', {}, a.name), a.kind === a.name ? '' : make('span', { class: 'quiet' }, a.kind), mailbox(a.depth),
        a.depth ? make('span', {}, `${count(a.depth)} waiting`) : '',
        a.restarts ? make('span', {}, `restarted ${a.restarts === 1 ? 'once' : `${count(a.restarts)} times`}`) : '',
        a.last_failure ? make('span', {}, failureText(a.last_failure)) : ''),
      ...branch(actors, a.id))))] : [];
  };
  const kinds = new Table($('kinds'), [
    { label: 'Kind', text: (k) => k.name },
    ...[['Live', 'live'], ['Mailboxes', 'depth'], ['Spawned', 'spawned'], ['Failed', 'failed'], ['Restarted', 'restarted'], ['Refused', 'rejected']]
      .map(([label, field]) => ({ label, number: true, text: (k) => count(k[field]) })),
    { label: 'Last failure', text: (k) => failureText(k.last_failure) },
  ]);
  const show = ({ actors: a }) => {
    const all = (field) => a.kinds.reduce((sum, k) => sum + k[field], 0);
    figures({ live: count(all('live')), depth: count(all('depth')), goroutines: count(a.goroutines), restarts: count(all('restarted')),
      dead: count(a.dead_letters.reduce((sum, d) => sum + d.count, 0)) });
    same($('tree'), JSON.stringify(a.actors), () => [make('ul', {}, make('li', {}, make('div', { class: 'card node' }, make('b', {}, 'stagedoor'), make('span', { class: 'quiet' }, 'supervises')), ...branch(a.actors, '')))]);
    // A kind whose actors are all in the tree has nothing more to tell.
    const listed = new Set(a.actors.map((one) => one.kind));
    kinds.show(a.kinds.filter((k) => !listed.has(k.name) || k.spawned > k.live || k.failed || k.rejected), (k) => k.name);
    $('letters').hidden = !a.dead_letters.length;
    same($('letters').querySelector('dl'), JSON.stringify(a.dead_letters), () => a.dead_letters.flatMap((d) => fact(d.name, count(d.count))));
  };
  return { show, wish: () => ({ view }) };
}

// What is heard faster than it can be drawn is drawn once.
const { show, hear, wish } = { requests: requestsView, request: requestView, actors: actorsView }[view]();
let next;
const feed = new Feed(wish, (message) => {
  if (message.type === 'lanes') hear(message); // each has changes: none may be left out
  if (message.type !== view) return;
  if (!next) requestAnimationFrame(() => { const m = next; next = undefined; show(m); });
  next = message;
});
