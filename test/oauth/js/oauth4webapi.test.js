import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as oauth from 'oauth4webapi';
import { Browser, clientId, clientSecret, issuer, redirectUri, username } from './gateway.js';

const client = { client_id: clientId };
const insecure = { [oauth.allowInsecureRequests]: true }; // loopback

async function discover() {
  const url = new URL(issuer);
  return oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, { algorithm: 'oauth2', ...insecure }));
}

// authorize does the first half, up to the callback.
async function authorize(as, { scope = 'profile balance', decision, browser = new Browser() } = {}) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(as.authorization_endpoint);
  url.search = new URLSearchParams({
    client_id: clientId, redirect_uri: redirectUri, response_type: 'code', scope, state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  });
  const callback = await browser.authorize(url.href, decision);
  return { verifier, state, callback };
}

for (const [name, authentication] of Object.entries({ post: oauth.ClientSecretPost, basic: oauth.ClientSecretBasic })) {
  test(`whole flow, client_secret_${name}`, async () => {
    const as = await discover();
    const auth = authentication(clientSecret);
    const { verifier, state, callback } = await authorize(as);
    const params = oauth.validateAuthResponse(as, client, callback, state);
    const first = await oauth.processAuthorizationCodeResponse(as, client,
      await oauth.authorizationCodeGrantRequest(as, client, auth, params, redirectUri, verifier, insecure));
    assert.equal(first.token_type, 'bearer');
    assert.equal(first.expires_in, 7200);
    assert.equal(first.scope, 'profile balance');

    const info = await oauth.processUserInfoResponse(as, client, oauth.skipSubjectCheck,
      await oauth.userInfoRequest(as, client, first.access_token, insecure));
    assert.equal(info.sub, String(info.id));
    assert.equal(info.username, username);
    assert.match(info.balance_formatted, /^-?\d+\.\d{2,6}$/);

    const second = await oauth.processRefreshTokenResponse(as, client,
      await oauth.refreshTokenGrantRequest(as, client, auth, first.refresh_token, insecure));
    assert.notEqual(second.refresh_token, first.refresh_token);

    const inspect = async (token) => oauth.processIntrospectionResponse(as, client, await oauth.introspectionRequest(as, client, auth, token, insecure));
    assert.equal((await inspect(second.access_token)).active, true);
    await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, auth, second.refresh_token, insecure));
    assert.equal((await inspect(second.access_token)).active, false);
    await assert.rejects(async () => oauth.processRefreshTokenResponse(as, client,
      await oauth.refreshTokenGrantRequest(as, client, auth, second.refresh_token, insecure)), { error: 'invalid_grant' });
  });
}

test('denial is an error it understands', async () => {
  const as = await discover();
  const { state, callback } = await authorize(as, { decision: 'deny' });
  assert.throws(() => oauth.validateAuthResponse(as, client, callback, state), { error: 'access_denied' });
});

test('an unknown scope is an error it understands, behind a page until the user has signed in', async () => {
  const as = await discover();
  const browser = new Browser();
  const first = await authorize(as, { scope: 'admin', browser });
  assert.equal(browser.links, 1);
  assert.throws(() => oauth.validateAuthResponse(as, client, first.callback, first.state), { error: 'invalid_scope' });
  await authorize(as, { browser });
  const second = await authorize(as, { scope: 'admin', browser });
  assert.equal(browser.links, 1);
  assert.throws(() => oauth.validateAuthResponse(as, client, second.callback, second.state), { error: 'invalid_scope' });
});

test('a wrong or missing iss, as in a mix-up, is refused by it', async () => {
  const as = await discover();
  const { state, callback } = await authorize(as);
  const missing = new URL(callback);
  missing.searchParams.delete('iss');
  assert.throws(() => oauth.validateAuthResponse(as, client, missing, state));
  const wrong = new URL(callback);
  wrong.searchParams.set('iss', 'https://evil.example');
  assert.throws(() => oauth.validateAuthResponse(as, client, wrong, state));
});

test('a wrong secret is a challenge it understands', async () => {
  const as = await discover();
  const { verifier, state, callback } = await authorize(as);
  const params = oauth.validateAuthResponse(as, client, callback, state);
  await assert.rejects(async () => oauth.processAuthorizationCodeResponse(as, client,
    await oauth.authorizationCodeGrantRequest(as, client, oauth.ClientSecretPost('as_wrong'), params, redirectUri, verifier, insecure)),
  { error: 'invalid_client' });
  await oauth.processAuthorizationCodeResponse(as, client,
    await oauth.authorizationCodeGrantRequest(as, client, oauth.ClientSecretPost(clientSecret), params, redirectUri, verifier, insecure));
});
