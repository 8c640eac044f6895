package browser

import (
	"net/url"
	"strings"
)

// maxNext bounds an address to come back to.
const maxNext = 2000

// LocalPath returns next if it is a path of this service to which a browser can be sent, and fallback otherwise. It
// accepts fewer texts as a path than browsers do, because browsers take a backslash for a slash and ignore tabs and
// line ends (decisions, authorize; open redirects).
func LocalPath(next, fallback string) string {
	if len(next) > maxNext || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") {
		return fallback
	}
	for _, c := range []byte(next) {
		if c <= ' ' || c > '~' || c == '\\' {
			return fallback
		}
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" ||
		strings.Contains(u.Path, "//") ||
		strings.Contains(u.Path, `\`) {
		return fallback
	}
	return next
}
