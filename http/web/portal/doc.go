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
//	POST form --303--> page?done=word        the page reports the change once
//	POST form --200--> a secret, shown once  it is not kept, so no other page can show it
//	POST form --4xx--> the same page, with what was typed and what is wrong
//
// A page or an object that the user may not see is answered with 404, as if it
// did not exist. This includes the pages of administration.
//
// # Adding a page
//
// A page is a method of requestContext and a line in one of the functions of routes. member, memberForm, admin and
// adminForm wrap the method: they find out who has signed in, read the form and check its token, so that the method
// starts with a user who may be there. leading does the same for the leads of a group.
//
//   - A page is drawn with show from a type of package pages. The function whose name ends with View makes that type,
//     so that a form which is refused can draw the same page again.
//   - A form that has made its change ends with done, which sends the browser to a page with a word in the query. The
//     notices of problems.go turn the word into a sentence, so that an address can show no text of its author's choice.
//   - A form that is refused draws its page with what was typed and the problem. Forms of a single button call
//     concluded.
//   - A form that makes something new carries an id (sentForms), so that sending it twice makes it once.
//   - A form whose change is recorded is wrapped in limited, unless a user needs it against a thief who has a session.
//
// # Concurrency and errors
//
// A Portal is shared by all requests and a requestContext belongs to one. Errors of the registry and the ledger become
// a status and a sentence in requestContext.problem. An error that is not known there is logged, and the page says only
// that the gateway is busy.
//
// # Files
//
//	portal.go problems.go fields.go lists.go sent.go changes.go   routes, errors, forms, limits: what pages share
//	signin.go external.go link.go passkeys.go secondfactor.go     the ways to sign in
//	first.go account.go keys.go ownapps.go security.go            a user's own pages
//	spend.go spending.go forecast.go spendfile.go                 the pages of spending, their sums, budgets, files
//	requests.go recordings.go search.go media.go                  requests, searches, pictures, videos
//	live.go flow.go                                               pages that move: chats, and the requests in flight
//	lead.go                                                       the pages of a group's lead
//	users.go people.go groups.go mails.go admin.go apps.go audit.go   administration of people, keys, codes, apps
//	models.go providertests.go settings.go                        administration of models and providers
package portal
