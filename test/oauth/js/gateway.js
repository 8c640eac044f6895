// Where the gateway under test is, its user and app, and a browser made of fetch that
// fills in the service's forms.
import assert from 'node:assert/strict';

function need(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set; start the suite with ../run.sh`);
  return value;
}

export const issuer = need('STAGEDOOR_URL').replace(/\/$/, '');
export const clientId = need('STAGEDOOR_CLIENT_ID');
export const clientSecret = need('STAGEDOOR_CLIENT_SECRET');
export const redirectUri = need('STAGEDOOR_REDIRECT_URI');
export const username = need('STAGEDOOR_USERNAME');
export const admin = need('STAGEDOOR_OPERATOR');
export const password = need('STAGEDOOR_PASSWORD');

export class Browser {
  #cookies = new Map();

  // open gets an address of the gateway, or posts a form to it.
  async open(address, form) {
    const response = await fetch(new URL(address, issuer), {
      method: form ? 'POST' : 'GET',
      body: form,
      redirect: 'manual',
      headers: { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      if (/max-age=0/i.test(line)) this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
    return { status: response.status, location: response.headers.get('location'), page: await response.text() };
  }

  // submit fills in the first form of a page.
  submit({ status, page }, fields) {
    const action = /<form method="post" action="([^"]+)"/.exec(page);
    assert.ok(action, `no form on the page, status ${status}:\n${page}`);
    const form = new URLSearchParams(fields);
    for (const [, name, value] of page.slice(action.index).matchAll(/<input type="hidden" name="(id|token)" value="([^"]*)">/g)) {
      if (!form.has(name)) form.set(name, value);
    }
    return this.open(action[1], form);
  }

  links = 0; // to the app that were followed

  // authorize signs in, decides, and returns where the browser is sent. From a page that
  // shows an error it follows the link to the app.
  async authorize(address, decision = 'allow') {
    let answer = await this.open(address);
    while (!answer.location?.startsWith(redirectUri)) {
      const link = /<a class="button primary" href="([^"]+)">Go back to/.exec(answer.page);
      if (link) {
        this.links++;
        return new URL(link[1].replaceAll('&amp;', '&').replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(code)));
      }
      if (answer.location) answer = await this.open(answer.location);
      else if (/name="password"/.test(answer.page)) answer = await this.submit(answer, { username, password });
      else answer = await this.submit(answer, { decision });
    }
    return new URL(answer.location);
  }
}
