// Package oauth is the HTTP side of the authorization service
// (imagegen-and-oauth.md 2.2-2.4, 4.3-4.7, 5, 7; decisions "Users, money,
// OAuth"): it reads requests, holds them against the protocol's rules in the
// order the protocol wants, and writes answers, redirects and pages.
//
// It decides about no user, app, code or token: that is the registry's (package
// actors/tokens). It keeps nothing that has to outlive the process.
//
//	app --GET authorize--> sign in --POST--> consent --POST--> redirect with code
//	        |  |              |                 |
//	        |  |              +- auto_authorize: typing the password is the yes
//	        |  +- signed in, and this was approved before ---> redirect with code
//	        +- redirect_uri not to be trusted ---> a page, never a redirect
//
// Between the pages the request travels in the browser, sealed (browser.Guard.Seal):
// the browser cannot read or change it, no other browser can use it, and a flood of
// requests cannot push it out of the gateway's memory. The registry notes that a request
// has got its code, or that a top-up link was opened, in the record of the user and app.
//
// Errors of authorize go to the app when the user has signed in. Until then they are a
// page with a link to the app, because nobody has vouched for the app yet and a redirect
// would let it use the gateway's address as bait (RFC 9700 4.11.2).
package oauth
