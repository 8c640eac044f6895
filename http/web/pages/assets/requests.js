// A range of time is chosen by dragging over the bars of the strip. A click without a movement opens one bar, and the
// fields below the strip do the same for keyboards and without this script.
const strip = document.querySelector('svg[data-from]');
const least = 5; // pixels; a shorter movement is a click
const minute = 60;

let drag; // where it began and the rectangle that shows it, while a button is held
let dragged = false;

const place = (event) => {
  const box = strip.getBoundingClientRect();
  return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
};

function end() {
  drag?.mark?.remove();
  drag = undefined;
}

strip?.addEventListener('pointerdown', (event) => {
  dragged = false;
  if (event.button === 0) drag = { at: place(event), x: event.clientX };
});
strip?.addEventListener('pointermove', (event) => {
  if (!drag || !drag.mark && Math.abs(event.clientX - drag.x) < least) return;
  if (!drag.mark) {
    drag.mark = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    drag.mark.setAttribute('class', 'picked');
    drag.mark.setAttribute('height', '100%');
    strip.append(drag.mark);
    strip.setPointerCapture(event.pointerId); // so that it goes on outside
  }
  const now = place(event);
  drag.mark.setAttribute('x', `${100 * Math.min(now, drag.at)}%`);
  drag.mark.setAttribute('width', `${100 * Math.abs(now - drag.at)}%`);
});
strip?.addEventListener('pointerup', (event) => {
  if (drag?.mark) {
    dragged = true;
    const first = Number(strip.dataset.from), length = Number(strip.dataset.to) - first;
    const [from, to] = [drag.at, place(event)].sort((a, b) => a - b);
    const address = new URL(location.href);
    for (const name of ['range', 'before', 'done']) address.searchParams.delete(name);
    address.searchParams.set('from', Math.floor((first + from * length) / minute) * minute);
    address.searchParams.set('to', Math.ceil((first + to * length) / minute) * minute);
    location.assign(address);
  }
  end();
});
strip?.addEventListener('pointercancel', end);
strip?.addEventListener('dragstart', (event) => event.preventDefault()); // of the link of a bar
strip?.addEventListener('click', (event) => { if (dragged) event.preventDefault(); }, true);
addEventListener('keydown', (event) => { if (event.key === 'Escape') end(); });
