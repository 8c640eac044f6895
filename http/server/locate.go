package server

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Clients join a base address to paths of their own, and they disagree about which of the two has the version: some
// want https://host, others https://host/v1 (or /v1beta). If a user gives the other form, the version is missing or
// doubled, and a slash at the joint may be doubled too. The router corrects these mistakes for the paths that it does
// not serve as they are. All other requests pay nothing for that.

// isVersion reports whether a segment of a path is the version of an API, as v1 and v1beta are.
func isVersion(segment string) bool {
	return len(segment) > 1 && segment[0] == 'v' && segment[1] >= '0' && segment[1] <= '9'
}

// cutVersions divides path into the versions that it begins with and the rest, which begins with a slash or is empty.
// Empty segments between the versions are dropped.
func cutVersions(path string) (versions []string, rest string) {
	rest = path
	for strings.HasPrefix(rest, "/") {
		segment, _, _ := strings.Cut(rest[1:], "/")
		if segment != "" && !isVersion(segment) {
			return versions, rest
		}
		if segment != "" {
			versions = append(versions, segment)
		}
		rest = rest[1+len(segment):]
	}
	return versions, rest
}

const (
	// maxLocated bounds the bytes of a path that locate looks at. Each look copies the path, before
	// any key is checked.
	maxLocated = 1 << 10
	// maxVersions bounds the versions before such a path. A mistake doubles one.
	maxVersions = 4
)

// locate returns the path with another version that serves a request whose own path has no route. The version that
// the client put last is tried first. It returns false if no version of the path has a route, or if the path has one.
func (r *router) locate(method, path string) (string, bool) {
	if len(path) > maxLocated {
		return "", false
	}
	asked, rest := cutVersions(path)
	if rest == "" || unclean(rest) || len(asked) > maxVersions {
		return "", false
	}
	slices.Reverse(asked)
	for _, version := range append(asked, r.versions...) {
		candidate := "/" + version + rest
		if r.serves(method, candidate) {
			return candidate, candidate != path
		}
	}
	return "", false
}

// serves reports whether path has a route. It has one also if the route is of other methods, because the mux then has a
// pattern for the path that answers 405.
func (r *router) serves(method, path string) bool {
	_, pattern := r.mux.Handler(&http.Request{Method: method, URL: &url.URL{Path: path}})
	return pattern != "" && pattern != "/"
}

// likenesses are the routes that suggest compares with an unknown path, in the order of their paths. A path is compared
// by one look for each of its pairs of letters, because any client can send any number of unknown paths.
type likenesses struct {
	routes []string
	pairs  []int            // of each route
	having map[string][]int // the places of the routes that have a pair
}

// newLikenesses returns those of all routes.
func newLikenesses(r *router) likenesses {
	l := likenesses{routes: slices.Collect(maps.Keys(r.methods)), having: make(map[string][]int)}
	l.routes = slices.AppendSeq(l.routes, maps.Keys(r.words))
	slices.Sort(l.routes)
	l.pairs = make([]int, len(l.routes))
	for i, route := range l.routes {
		_, served := cutVersions(route)
		for pair := range pairsOf(served) {
			l.having[pair] = append(l.having[pair], i)
			l.pairs[i]++
		}
	}
	return l
}

// suggest returns the route that resembles an unknown path most, for the message of its error. It returns "" if none
// resembles it. The measure is the share of common pairs of letters, which neither a missing part nor a foreign prefix
// reduces much.
func (r *router) suggest(path string) string {
	const (
		longest = 256 // no route is nearly as long
		enough  = 0.35
	)
	_, rest := cutVersions(path[:min(len(path), longest)])
	wanted, common := pairsOf(rest), make([]int, len(r.known.routes))
	for pair := range wanted {
		for _, i := range r.known.having[pair] {
			common[i]++
		}
	}
	best, most := "", enough
	for i, n := range common {
		if share := 2 * float64(n) / float64(len(wanted)+r.known.pairs[i]); n > 0 && share > most {
			best, most = r.known.routes[i], share
		}
	}
	return best
}

// pairsOf returns the pairs of neighbouring letters in a path, without slashes and the names of wildcards.
func pairsOf(path string) map[string]bool {
	pairs := make(map[string]bool)
	for segment := range strings.SplitSeq(strings.ToLower(path), "/") {
		if strings.HasPrefix(segment, "{") {
			continue
		}
		for i := range len(segment) - 1 {
			pairs[segment[i:i+2]] = true
		}
	}
	return pairs
}
