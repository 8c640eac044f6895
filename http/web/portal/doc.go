// Package portal serves the pages behind sign-in: a user's account, and the
// administration of the gateway for those who have that role. It reads forms,
// finds out who sent them, calls the package that decides, and fills in the page
// (package pages).
//
// It decides nothing itself: users, sessions, keys and apps are the registry's
// (actors/tokens), money is the ledger's (actors/ledger), figures are read from
// state. It is not for apps: they have http/oauth.
//
//	GET page --not signed in--> /signin?next=page --POST--> page
//	POST form --303--> page?done=word        what was done is said once there
//	POST form --200--> a secret, shown once  never kept, so nowhere to go to
//	POST form --4xx--> the same page, with what was typed and what is wrong
//
// Whatever is not the visitor's own does not exist to him: 404, the pages of
// administration included.
package portal
