// The gateway under test, started by ../run.sh, and a browser that is signed in there.
import { signedIn as visitSignedIn } from '../../oauth/js/signedin.js';

export { issuer, key, password, username } from '../../oauth/js/signedin.js';

// signedIn opens the page of video jobs of a signed-in user.
export const signedIn = (t, browser, options, before) => visitSignedIn(t, browser, '/live', options, before);

export const button = (at, name) => at.getByRole('button', { name });
export const line = (page, text) => page.waitForFunction((text) => document.getElementById('line').textContent.startsWith(text), text);
export const cards = (page, n) => page.waitForFunction((n) => document.querySelectorAll('.job:not([hidden])').length === n, n);
