package server

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Alias serves the paths below To also below From, for unmodified clients of a
// vendor whose own paths differ.
type Alias struct{ From, To string }

// aliased maps aliases to the paths that next serves. The longest matching alias wins.
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

// moved returns a copy of r with another path. r itself belongs to the server and stays unchanged.
func moved(r *http.Request, path string) *http.Request {
	to := r.WithContext(r.Context())
	to.URL = new(url.URL)
	*to.URL = *r.URL
	to.URL.Path, to.URL.RawPath = path, ""
	return to
}
