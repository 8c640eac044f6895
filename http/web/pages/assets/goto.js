// The search over everything as a dialog. shell.js loads it when it is first wanted.
export default function makeFinder(style) {
  const make = (tag, attributes, ...children) => {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
    e.append(...children);
    return e;
  };
  const list = make('ul', { class: 'hits', role: 'listbox', id: 'goto-hits', 'aria-label': 'Found' });
  const field = make('input', { type: 'search', maxlength: '200', 'aria-label': 'Go to', placeholder: 'Page, model, user, key or request id',
    role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'goto-hits', 'aria-autocomplete': 'list', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false' });
  const said = make('p', { class: 'quiet small', role: 'status' });
  const dialog = make('dialog', { class: 'goto', 'aria-label': 'Go to' }, field, list, said);
  let at = 0;
  let asked;
  const choose = (n) => {
    const all = [...list.querySelectorAll('a')];
    at = all.length ? (n + all.length) % all.length : 0;
    all.forEach((e, i) => e.setAttribute('aria-selected', String(i === at)));
    if (all.length) { field.setAttribute('aria-activedescendant', all[at].id); all[at].scrollIntoView({ block: 'nearest' }); } else field.removeAttribute('aria-activedescendant');
  };
  const find = async () => {
    asked?.abort();
    asked = new AbortController();
    try {
      const reply = await fetch(`/search.json?${new URLSearchParams({ q: field.value })}`, { signal: asked.signal });
      const hits = await reply.json();
      list.replaceChildren(...hits.map((hit, i) => make('li', { role: 'presentation' },
        make('a', { role: 'option', id: `goto-${i}`, href: hit.path, tabindex: '-1' }, make('span', { class: 'quiet small' }, hit.kind), make('b', { class: 'name' }, hit.name), make('span', { class: 'quiet small' }, hit.note ?? '')))));
      said.textContent = hits.length ? '' : 'Nothing found';
      choose(0);
    } catch (e) {
      if (e.name !== 'AbortError') said.textContent = 'The search did not answer. Try again.';
    }
  };
  let soon;
  field.addEventListener('input', () => { clearTimeout(soon); soon = setTimeout(find, 120); });
  dialog.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') { event.preventDefault(); choose(at + (event.key === 'ArrowDown' ? 1 : -1)); }
    // A search field keeps the first Escape for itself.
    if (event.key === 'Escape') { event.preventDefault(); dialog.close(); }
    if (event.key === 'Enter') { event.preventDefault(); list.children[at]?.firstChild.click(); }
  });
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  document.head.append(make('link', { rel: 'stylesheet', href: style }));
  document.body.append(dialog);
  return { dialog, open() { field.value = ''; list.replaceChildren(); dialog.showModal(); find(); } };
}
