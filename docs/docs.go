// Package docs holds those pages of the documentation that the program reads itself. The description of the public API
// takes its summaries from the list of routes and its error codes from the list of errors, so that neither is written
// twice, and the pages for people take the settings of clients from the pages of docs/clients.
package docs

import "embed"

// Files are all pages, by their paths in this folder. They are as they were when the program was built.
//
//go:embed *.md */*.md
var Files embed.FS

// Routes is routes.md. Each row of its tables has routes and a sentence about them.
//
//go:embed routes.md
var Routes string

// Errors is errors.md. Each row of its tables with a column "Retry" has codes, their status, whether the same request
// may succeed later, and their meaning.
//
//go:embed errors.md
var Errors string
