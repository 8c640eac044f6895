// A part of a page, such as the list of providers, is loaded again every few seconds, and what has changed is put in the
// place of what was there. All that is the same stays, with its focus and its selection. Without this script the page
// shows the moment at which it was loaded.
import {} from './back.js';
import { times } from './shell.js';

const every = 3000;
const patience = 10_000;
const part = document.querySelector('[data-fresh]');
const line = document.getElementById('line');

function say(word, lost) {
  if (!line) return;
  line.className = `tag ${lost ? 'warm' : 'good'}`;
  if (line.textContent !== word) line.textContent = word; // it is read out
}

// load returns the page as it is now. A page that is parsed in this way runs no script, so no policy is loosened.
const load = () => new Promise((done, fail) => {
  const request = new XMLHttpRequest();
  request.open('GET', part.dataset.fresh);
  request.responseType = 'document';
  request.timeout = patience;
  request.onload = () => done(request.response?.querySelector('[data-fresh]'));
  request.onerror = request.ontimeout = fail;
  request.send();
});

// merge makes a node as the fresh one is. Rows are found by their keys, so that a button stays that of its provider.
function merge(node, fresh) {
  if (node.isEqualNode(fresh)) return;
  if (node.nodeName !== fresh.nodeName) {
    node.replaceWith(fresh);
    return;
  }
  if (node.nodeType === Node.TEXT_NODE) node.data = fresh.data;
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  for (const { name } of [...node.attributes]) if (!fresh.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  const named = new Map([...node.children].filter((c) => c.dataset.key).map((c) => [c.dataset.key, c]));
  let at = node.firstChild;
  for (const next of [...fresh.childNodes]) {
    const key = next.dataset?.key;
    const here = key ? named.get(key) : at?.dataset?.key ? undefined : at;
    if (!here) {
      node.insertBefore(next, at);
      continue;
    }
    if (here === at) at = at.nextSibling;
    else node.insertBefore(here, at);
    merge(here, next);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

let timer;
async function refresh() {
  clearTimeout(timer);
  if (document.hidden) {
    say('paused', true);
    return;
  }
  const fresh = await load().catch(() => undefined);
  if (fresh) {
    const focused = document.activeElement;
    times(fresh);
    merge(part, fresh);
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true }); // its row was moved
    say('live');
  } else say('connection lost, reconnecting', true);
  timer = setTimeout(refresh, every);
}
document.addEventListener('visibilitychange', refresh);
timer = setTimeout(refresh, every);
say('live');
