// Behaviour that all pages share. Every page works without it: texts are copied by hand, the theme is a form, and
// times are written out in UTC. No text becomes markup.
const root = document.documentElement;

export function make(name, className, ...children) {
  const e = document.createElement(name);
  if (className) e.className = className;
  e.append(...children);
  return e;
}

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const text = button.dataset.copy || button.parentElement.querySelector('pre, code').textContent;
  try { await navigator.clipboard.writeText(text.trim()); } catch { return; }
  const label = button.querySelector('span');
  const was = label.textContent;
  if (was === 'Copied') return;
  button.classList.add('done');
  label.textContent = 'Copied';
  setTimeout(() => { label.textContent = was; button.classList.remove('done'); }, 1500);
});

// The theme changes at once. The form is sent in the background, so that nothing typed on the page is lost.
document.querySelector('form.theme')?.addEventListener('submit', (event) => {
  event.preventDefault();
  const form = event.target;
  const chosen = event.submitter;
  if (chosen.value === 'system') delete root.dataset.theme;
  else root.dataset.theme = chosen.value;
  for (const b of form.querySelectorAll('button')) b.ariaPressed = String(b === chosen);
  fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form, chosen)), redirect: 'manual' });
});

// Moments are shown as distances from now, and exactly (in the reader's zone) in their titles.
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
const hour = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const exact = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });

function ago(then, now) {
  const minutes = Math.floor((now - then) / 60_000);
  if (minutes < 0) return day.format(then);
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${minutes} min ago`;
  const yesterday = new Date(now);
  yesterday.setDate(now.getDate() - 1);
  if (then.toDateString() === yesterday.toDateString()) return `yesterday ${hour.format(then)}`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return day.format(then);
}

export function times(root = document) {
  const now = new Date();
  for (const e of root.querySelectorAll('time[data-ago]')) {
    const then = new Date(e.dateTime);
    e.textContent = ago(then, now);
    e.title = exact.format(then);
  }
}
times();
setInterval(() => { if (!document.hidden) times(); }, 30_000);

// Ctrl K, "/" on a page without a search of its own, and the link of the side bar open the search as a dialog, whose
// script is loaded then. The same search is a page without script.
const jump = document.querySelector('.jump');
let finder;

async function openFinder() {
  try { finder ??= (await import(jump.dataset.script)).default(jump.dataset.sheet); } catch { location.assign(jump.href); return; }
  if (!finder.dialog.open) finder.open();
}

jump?.addEventListener('click', (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  openFinder();
});

document.addEventListener('keydown', (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === 'k' && jump) {
    event.preventDefault();
    openFinder();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select, dialog')) return;
  if (event.key === '/') {
    const field = document.querySelector('main input[type=search]');
    if (!field && !jump) return;
    event.preventDefault();
    if (field) field.focus(); else openFinder();
  }
  // J and K go to the next and the previous row of a list whose rows are links.
  if (event.key === 'j' || event.key === 'k') {
    const rows = [...document.querySelectorAll('table[data-rows] tbody th a')];
    const n = rows.indexOf(document.activeElement) + (event.key === 'j' ? 1 : -1);
    rows[Math.min(Math.max(n, 0), rows.length - 1)]?.focus();
  }
});
