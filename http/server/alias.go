package server

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Alias makes the paths below From those below To (decisions.md "Names"): for
// unmodified clients of a vendor whose own paths have another name.
type Alias struct{ From, To string }

// aliased serves requests under their path's own name. Of several aliases the
// longest counts.
func aliased(aliases []Alias, next http.Handler) http.Handler {
	if len(aliases) == 0 {
		return next
	}
	aliases = slices.Clone(aliases)
	slices.SortStableFunc(aliases, func(a, b Alias) int { return cmp.Compare(len(b.From), len(a.From)) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, a := range aliases {
			if rest, ok := strings.CutPrefix(r.URL.Path, a.From); ok && (rest == "" || rest[0] == '/') {
				next.ServeHTTP(w, moved(r, a.To+rest))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// moved is r at another path. The request itself is the server's.
func moved(r *http.Request, path string) *http.Request {
	to := r.WithContext(r.Context())
	to.URL = new(url.URL)
	*to.URL = *r.URL
	to.URL.Path, to.URL.RawPath = path, ""
	return to
}
