// Package oauth serves the HTTP endpoints of the authorization service: app registration, the
// authorization, sign-in and consent pages, the token, revocation and introspection endpoints,
// userinfo and the top-up page. It reads requests, checks them against the rules of the protocol in
// the order that the protocol prescribes, and writes responses, redirects and pages.
//
// The package makes no decision about users, apps, codes or tokens. The token registry (package
// actors/tokens) makes these decisions and stores the result. This package keeps no state between
// two requests.
//
//	app --GET authorize--> sign in --POST--> consent --POST--> redirect with code
//	        |  |              |                 |
//	        |  |              +- auto_authorize: typing the password is the consent
//	        |  +- signed in, and consent was given before ---> redirect with code
//	        +- redirect_uri is not registered ---> a page, never a redirect
//
// Between two pages the browser carries the authorization request in sealed form
// (browser.Guard.Seal). The browser cannot read or change it and no other browser can use it. The
// gateway's memory holds none of it, so a flood of requests cannot evict the requests of others.
// The registry notes in the record of the user and app that a request was answered with a code, or
// that a top-up link was used.
//
// # Usage
//
// New makes a Service from Options, and Routes passes its handlers to the server. A Service is safe for concurrent use.
//
// # Errors
//
// Errors of the protocol endpoints have the flat JSON body of RFC 6749 5.2. Errors of authorize are
// sent to the app by a redirect if the user has signed in. Before that they are shown on a page
// with a link to the app, because anyone can register an app, and a redirect would let it use the
// gateway's address as bait (RFC 9700 4.11.2).
//
// # Standards
//
//	RFC 6749   authorize, token, errors; the only grants are authorization_code and refresh_token
//	RFC 7636   PKCE, of which only S256 is accepted
//	RFC 6750   the Authorization header of userinfo
//	RFC 7009   revocation
//	RFC 7662   introspection
//	RFC 8414   the metadata that clients read
//	RFC 9700   redirects and refresh tokens: exact addresses, rotation, no errors to an app before sign-in
//
// # Files
//
//	service.go metadata.go                             routes and the metadata
//	params.go client.go response.go redirect.go        parameters, client authentication, replies, redirects
//	authorize.go signin.go consent.go                  the pages from the app to the code
//	token.go introspect.go userinfo.go                 tokens, and what they say
//	apps.go logo.go topup.go                           registration of apps, their logos, top-up links
package oauth
