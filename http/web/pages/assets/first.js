// The page at /: asks the gateway with the key that the page shows, and measures the reply. Text of replies reaches the
// page as text, never as HTML.
import { money, receipt, seconds, stream } from './stream.js';

const $ = (id) => document.getElementById(id);
const form = $('ask');
const figure = (name, text) => { $('measure').querySelector(`[data-figure="${name}"]`).textContent = text; };

async function ask(question, model) {
  const headers = { authorization: `Bearer ${$('key').textContent}` };
  const body = { model, messages: [{ role: 'user', content: question }] };
  const m = await stream('/v1/chat/completions', headers, body, (text) => $('answer').append(text));
  figure('first', m.first ? seconds(m.first) : 'no');
  figure('rate', m.rate ? String(Math.round(m.rate)) : '–');
  figure('tokens', m.usage ? `${m.usage.prompt_tokens} → ${m.usage.completion_tokens}` : '–');
  figure('cost', '');
  $('measure').hidden = false;
  figure('cost', money((await receipt(`/v1/receipts/${encodeURIComponent(m.id)}`, headers))?.charged));
}

form?.addEventListener('submit', async (event) => {
  event.preventDefault();
  const button = form.querySelector('button[type=submit]');
  if (button.disabled) return;
  button.disabled = true;
  $('answer').replaceChildren();
  $('answer').ariaBusy = 'true';
  $('ask-problem').hidden = true;
  $('measure').hidden = true;
  try {
    await ask($('question').value, $('model').value);
  } catch (problem) {
    $('ask-problem').textContent = problem.message;
    $('ask-problem').hidden = false;
  } finally {
    $('answer').ariaBusy = 'false';
    button.disabled = false;
  }
});
