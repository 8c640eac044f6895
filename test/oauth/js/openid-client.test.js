import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as client from 'openid-client';
import { Browser, clientId, clientSecret, issuer, redirectUri, username } from './gateway.js';

async function discover(authentication) {
  return client.discovery(new URL(issuer), clientId, undefined, authentication,
    { algorithm: 'oauth2', execute: [client.allowInsecureRequests] });
}

for (const [name, authentication] of Object.entries({
  post: client.ClientSecretPost(clientSecret), basic: client.ClientSecretBasic(clientSecret),
})) {
  test(`whole flow, client_secret_${name}`, async () => {
    const config = await discover(authentication);
    const pkceCodeVerifier = client.randomPKCECodeVerifier();
    const expectedState = client.randomState();
    const url = client.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri, scope: 'profile balance', state: expectedState,
      code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256',
    });
    const callback = await new Browser().authorize(url.href);
    const first = await client.authorizationCodeGrant(config, callback, { pkceCodeVerifier, expectedState });
    assert.equal(first.expires_in, 7200);
    assert.ok(first.expiresIn() > 7000, 'the client counts down from it');

    const info = await client.fetchUserInfo(config, first.access_token, client.skipSubjectCheck);
    assert.equal(info.sub, String(info.id));
    assert.equal(info.username, username);

    const second = await client.refreshTokenGrant(config, first.refresh_token);
    assert.notEqual(second.access_token, first.access_token);
    assert.equal((await client.tokenIntrospection(config, second.access_token)).active, true);
    await client.tokenRevocation(config, second.refresh_token);
    assert.equal((await client.tokenIntrospection(config, second.access_token)).active, false);
  });
}

test('a state that is not its own is refused by it', async () => {
  const config = await discover(client.ClientSecretPost(clientSecret));
  const url = client.buildAuthorizationUrl(config, { redirect_uri: redirectUri, scope: 'profile', state: 'mine' });
  const callback = await new Browser().authorize(url.href);
  await assert.rejects(client.authorizationCodeGrant(config, callback, { expectedState: 'other' }));
  await client.authorizationCodeGrant(config, callback, { expectedState: 'mine' });
  await assert.rejects(client.authorizationCodeGrant(config, callback, { expectedState: 'mine' }), { error: 'invalid_grant' });
});
