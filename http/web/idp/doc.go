// Package idp sends people to OpenID providers, such as a company's Keycloak or Google, and reads the answers with
// which they return. It is the client's side of OpenID Connect: discovery, the authorization code flow with PKCE, and
// the ID token, which go-oidc verifies. What a person may do here is decided elsewhere: http/web/portal signs people
// in, and actors/tokens knows which user a person is. The other direction, in which apps sign in at the gateway, is
// package http/oauth.
//
// # Usage
//
// Begin returns the address to which the browser goes, and an Attempt. The caller keeps the Attempt in that browser,
// sealed and bound to it, and gives it to Finish with the query with which the provider sends the browser back. So the
// gateway remembers nothing, strangers fill no memory, and the browser may come back to another node.
//
// # Trust
//
// A provider is trusted to say who a person is, and with nothing else. Its replies are bounded in bytes and time and
// are never shown. It is called at its issuer's host; other hosts that its documents name must have public addresses,
// so that a provider cannot make the gateway call the private network. Each provider has a redirect address of its own,
// and an answer that names another issuer is refused, so that answers of two providers cannot be mixed up (RFC 9207).
//
// # Concurrency
//
// Any goroutine may use a Client.
package idp
