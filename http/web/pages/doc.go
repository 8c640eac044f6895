// Package pages draws what people see in a browser: one frame, one stylesheet,
// one type per page. It escapes, sets the headers that every page needs, and
// serves its own assets; nothing on a page comes from anywhere else, none has
// script or style in its HTML, and none needs a script but those that move (Live).
//
// It decides nothing. The handler of a page fills in its type.
//
// A new page is
//
//   - a type with a method frame. One behind sign-in embeds Viewer, which its
//     handler makes with NewViewer, and returns v.at(place, template, title);
//     a public page returns a frame of its own.
//   - a template of the name it says, in templates/. What it shows goes into
//     section.card; forms carry {{template "token" .Token}}; a button that ends
//     something stands in details.confirm; a table is table.stack, whose cells
//     say what they are in data-label and become cards on a phone. parts.html
//     has what several pages share.
//   - a place and a line in navGroups (viewer.go), if it is to be in the navigation.
//   - a case in TestEveryPageIsDrawn.
//   - if it moves, a module of its own among the assets, named by frame.script;
//     frame.style names a stylesheet that no other page needs.
//
// Colours, fonts and spaces are custom properties at the top of stagedoor.css;
// both themes set the same ones, so a page never names a colour.
//
// # Files
//
//	pages.go viewer.go assets.go theme.go live.go        frame, navigation, stylesheets, scripts, moving pages
//	format.go dollars.go colours.go scopetexts.go        how numbers, money, names and scopes are written
//	signin.go link.go external.go secondfactor.go        signing in, passkeys, linked accounts
//	first.go account.go clients.go ownapps.go topup.go   a user's own pages
//	requests.go recorded.go spend.go search.go chat.go   the log of requests, spending, searches, chats and pictures
//	led.go groups.go admin.go audit.go                   a lead's group, and the administration of people
//	models.go modelmap.go providers.go settings.go flow.go   models, providers and the requests in flight
//	failure.go                                           errors
//
// # Concurrency and errors
//
// A page is written by one goroutine. Templates and assets are read when the program starts and do not change. Write
// draws the whole page before it sends the first byte, so that a page which cannot be drawn is an error with its status
// and not half a page.
package pages
