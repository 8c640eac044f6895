package catalog

import "strings"

// climbs reports whether a model's name could lead out of its place in a path: it
// has a segment that is empty or made of dots, also for a server that decodes a
// path twice, takes a backslash for a slash, or cuts parameters off a segment.
func climbs(name string) bool {
	if strings.IndexByte(name, '/') < 0 && strings.IndexByte(name, '\\') < 0 && strings.IndexByte(name, '%') < 0 {
		return name == "." || name == ".."
	}
	name = strings.ToLower(name)
	for strings.Contains(name, "%25") {
		name = strings.ReplaceAll(name, "%25", "%")
	}
	name = encoded.Replace(name)
	for segment := range strings.SplitSeq(name, "/") {
		segment, _, _ = strings.Cut(segment, ";")
		if segment == "" || segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

var encoded = strings.NewReplacer("%2f", "/", "%5c", "/", `\`, "/", "%2e", ".", "%3b", ";")
