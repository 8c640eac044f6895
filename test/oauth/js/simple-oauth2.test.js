import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AuthorizationCode } from 'simple-oauth2';
import { Browser, clientId, clientSecret, issuer, redirectUri } from './gateway.js';

for (const authorizationMethod of ['body', 'header']) {
  test(`whole flow, credentials in the ${authorizationMethod}`, async () => {
    const client = new AuthorizationCode({
      client: { id: clientId, secret: clientSecret },
      auth: { tokenHost: issuer, tokenPath: '/api/oauth2/token', authorizePath: '/api/oauth2/authorize', revokePath: '/api/oauth2/revoke' },
      options: { authorizationMethod },
    });
    const url = client.authorizeURL({ redirect_uri: redirectUri, scope: 'profile balance', state: 'xyz' });
    const callback = await new Browser().authorize(url);
    const options = { code: callback.searchParams.get('code'), redirect_uri: redirectUri };
    const first = await client.getToken(options);
    assert.equal(first.expired(), false);
    assert.equal(first.token.scope, 'profile balance');

    const second = await first.refresh();
    assert.notEqual(second.token.refresh_token, first.token.refresh_token);
    const userinfo = (token) => fetch(`${issuer}/api/oauth2/userinfo`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal((await userinfo(second.token.access_token)).status, 200);
    await second.revokeAll();
    assert.equal((await userinfo(second.token.access_token)).status, 401);
    await assert.rejects(client.getToken(options), (err) => err.data.payload.error === 'invalid_grant');
  });
}
