package upstream

import (
	"errors"
	"net/url"
	"strings"
)

// errPath is the error of a path that would leave its place below the base address. The catalogue refuses
// such names of models, and shapes refuse such ids.
var errPath = errors.New("a name would lead to another path of the provider")

// below returns the address of a path below the provider's base address. It escapes each segment, so that a
// name in the path stays one segment.
func (c *Client) below(path string) (url.URL, error) {
	u := *c.base
	u.Path = join(c.base.Path, path)
	if plain(path) {
		if u.RawPath != "" {
			u.RawPath = join(c.base.RawPath, path)
		}
		return u, nil
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if i > 0 && s == "" || s == "." || s == ".." {
			return u, errPath
		}
		segments[i] = url.PathEscape(s)
	}
	u.RawPath = join(c.base.EscapedPath(), strings.Join(segments, "/"))
	return u, nil
}

// plain reports whether a path needs no escape and has no segment of dots.
func plain(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '~', c == ':':
		case c == '.' && i > 0 && path[i-1] != '/':
		case c == '/' && (i == 0 || path[i-1] != '/'):
		default:
			return false
		}
	}
	return true
}
