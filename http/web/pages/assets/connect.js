// The card at the end of the page Connect turns green when a request arrives. It is fetched with its page while that is
// seen.
import { times } from './shell.js';

const card = document.getElementById('arrived');

setInterval(() => {
  if (document.hidden) return;
  const request = new XMLHttpRequest();
  request.open('GET', location.href);
  request.responseType = 'document'; // which runs no script and is no sink of Trusted Types
  request.onload = () => {
    const now = request.response?.getElementById('arrived');
    if (!now || now.dataset.at === card.dataset.at) return;
    card.dataset.at = now.dataset.at;
    card.replaceChildren(...now.childNodes);
    times();
  };
  request.send();
}, 3000);
