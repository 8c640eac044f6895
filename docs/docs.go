// Package docs holds those pages of the documentation that the program reads itself. The description of the public API
// takes its summaries from the list of routes and its error codes from the list of errors, so that neither is written
// twice. It is not for serving pages to people.
package docs

import _ "embed"

// Routes is routes.md. Each row of its tables has routes and a sentence about them.
//
//go:embed routes.md
var Routes string

// Errors is errors.md. Each row of its tables with a column "Retry" has codes, their status, whether the same request
// may succeed later, and their meaning.
//
//go:embed errors.md
var Errors string
