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
// # Errors
//
// Errors of the protocol endpoints have the flat JSON body of RFC 6749 5.2. Errors of authorize are
// sent to the app by a redirect if the user has signed in. Before that they are shown on a page
// with a link to the app, because anyone can register an app, and a redirect would let it use the
// gateway's address as bait (RFC 9700 4.11.2).
package oauth
