// Behaviour that all pages share. Every page works without it: texts are copied by hand, the theme is a form, and
// times are written out in UTC. No text becomes markup.
const root = document.documentElement;

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

function times() {
  const now = new Date();
  for (const e of document.querySelectorAll('time[data-ago]')) {
    const then = new Date(e.dateTime);
    e.textContent = ago(then, now);
    e.title = exact.format(then);
  }
}
times();
setInterval(() => { if (!document.hidden) times(); }, 30_000);

// "/" goes to the search field of the page.
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.target.closest('input, textarea, select')) return;
  const field = document.querySelector('input[type=search]');
  if (!field) return;
  event.preventDefault();
  field.focus();
});
