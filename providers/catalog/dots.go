package catalog

import "strings"

// leavesPath reports whether a model's name could lead out of its place in a path, because it has
// a segment that is empty, "." or "..". It assumes that servers decode a path twice, take a
// backslash for a slash, and cut parameters off a segment.
func leavesPath(name string) bool {
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
