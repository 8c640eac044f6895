// A form in a row of a table leads back to the page. The focus then goes where it was in the row, so that a
// person with a keyboard does not begin at the top of the page again.
const controls = (row) => [...row?.querySelectorAll('a, button, summary') ?? []];
const name = (row) => row.querySelector('th')?.innerText;

addEventListener('submit', ({ target, submitter }) => {
  const row = target.closest('tr');
  if (row && submitter) sessionStorage.row = JSON.stringify([location.pathname, name(row), controls(row).indexOf(submitter)]);
});

const [path, named, at] = JSON.parse(sessionStorage.row ?? '[]');
delete sessionStorage.row;
if (path === location.pathname && document.activeElement === document.body) {
  controls([...document.querySelectorAll('main tr')].find((row) => name(row) === named))[at]?.focus();
}
