// A link with data-dialog opens the main part of its page as a dialog. Without script, or if that fails, it opens the
// page itself. Forms in the dialog are sent as those of the page are.
import {} from './back.js';

document.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-dialog]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const leave = () => location.assign(link.href);
  const request = new XMLHttpRequest();
  request.open('GET', link.href);
  request.responseType = 'document'; // which runs no script and is no sink of Trusted Types
  request.onerror = leave;
  request.onload = () => {
    const main = request.response?.querySelector('main');
    if (request.status !== 200 || request.responseURL !== link.href || !main) return leave();
    const dialog = document.createElement('dialog');
    dialog.ariaLabel = link.ariaLabel;
    dialog.append(...main.childNodes);
    dialog.addEventListener('click', (click) => {
      if (click.target !== dialog && !click.target.closest('[data-close]')) return;
      click.preventDefault();
      dialog.close();
    });
    dialog.addEventListener('close', () => { dialog.remove(); link.focus(); });
    document.body.append(dialog);
    dialog.showModal();
  };
  request.send();
});
