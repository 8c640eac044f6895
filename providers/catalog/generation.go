package catalog

import "strings"

type family uint8

const (
	unknown family = iota
	claude
	gpt
	gemini
)

// version is a generation as major*100 + minor. 0 is unknown.
type version int

// generation returns the family and the generation in a model's name. Platforms put prefixes and
// suffixes around them. Dates are not versions:
// claude-3-5-sonnet-20241022 is 3.5, claude-opus-4-1-20250805 is 4.1.
func generation(model string) (family, version) {
	model = strings.ToLower(model)
	if _, rest, ok := strings.Cut(model, "claude-"); ok {
		return claude, claudeVersion(rest)
	}
	if _, rest, ok := strings.Cut(model, "gemini-"); ok {
		return gemini, dotted(rest)
	}
	if _, rest, ok := strings.Cut(model, "gpt-"); ok {
		v := dotted(rest)
		if v == 3500 { // one platform forbids dots: gpt-35-turbo
			v = 305
		}
		return gpt, v
	}
	return unknown, 0
}

// claudeVersion reads the first number as the major version, and a number directly after it as
// the minor version.
func claudeVersion(s string) version {
	for s != "" {
		var word string
		word, s = cutWord(s)
		major, ok := number(word)
		if !ok {
			continue
		}
		next, _ := cutWord(s)
		minor, _ := number(next)
		return major*100 + minor
	}
	return 0
}

// cutWord splits at the next separator.
func cutWord(s string) (word, rest string) {
	i := strings.IndexAny(s, "-.@:/_")
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// number reads a word of one or two digits; longer ones are dates and builds.
func number(word string) (version, bool) {
	if len(word) == 0 || len(word) > 2 {
		return 0, false
	}
	var v version
	for _, c := range []byte(word) {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + version(c-'0')
	}
	return v, true
}

// dotted reads a version at the beginning of s: "4o" is 4.0, "2.5-flash" is 2.5.
func dotted(s string) version {
	digits := func(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }
	first := digits(s)
	major, ok := number(first)
	if !ok {
		return 0
	}
	var minor version
	if rest, found := strings.CutPrefix(s[len(first):], "."); found {
		minor, _ = number(digits(rest))
	}
	return major*100 + minor
}
