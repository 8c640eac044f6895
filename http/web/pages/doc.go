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
package pages
