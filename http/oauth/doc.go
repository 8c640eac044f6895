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
// Between the steps a transaction holds the request. It is kept here and only
// its id travels, so that nothing a browser sends can change it, and it belongs
// to the browser it began in.
package oauth
