package sandbox

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// longestPattern bounds the patterns that are tried, in bytes. A longer one gets an ordinary
// string.
const longestPattern = 1000

// matchPattern makes a string that matches a pattern and has a length between two bounds. ok is false if it finds none,
// and for patterns that Go's regular expressions do not know.
// It walks the syntax tree of the expression and takes the simplest choice at each place. Anchors
// and boundaries are ignored there, and the check at the end finds out whether that was right.
func matchPattern(pattern string, least, most int) (_ string, ok bool) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || len(pattern) > longestPattern {
		return "", false
	}
	check, err := regexp.Compile(pattern)
	if err != nil {
		return "", false
	}
	// More repetitions make a longer string. The first one that is long enough wins.
	for extra := range 70 {
		s := string(appendMatch(nil, tree, extra, 0))
		padded := s + strings.Repeat("x", max(least-utf8.RuneCountInString(s), 0))
		for _, s := range []string{padded, s} {
			if n := utf8.RuneCountInString(s); n >= least && n <= most && check.MatchString(s) {
				return s, true
			}
		}
		if len(s) > most {
			break
		}
	}
	return "", false
}

// appendMatch appends a match whose repeated parts occur extra times more than they must.
// Its depth and the length of its result are bounded, because nested repetitions grow
// exponentially.
func appendMatch(b []byte, re *syntax.Regexp, extra, depth int) []byte {
	n, subs := 1, re.Sub
	switch re.Op {
	case syntax.OpLiteral:
		return append(b, string(re.Rune)...)
	case syntax.OpCharClass:
		return utf8.AppendRune(b, plainRune(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return append(b, 'a')
	case syntax.OpAlternate:
		subs = subs[:1]
	case syntax.OpStar:
		n = extra
	case syntax.OpPlus:
		n = 1 + extra
	case syntax.OpQuest:
		n = min(extra, 1)
	case syntax.OpRepeat:
		if n = re.Min + extra; re.Max >= 0 {
			n = min(n, re.Max)
		}
	}
	for range n {
		for _, sub := range subs {
			if len(b) <= longestText && depth <= 100 {
				b = appendMatch(b, sub, extra, depth+1)
			}
		}
	}
	return b
}

// plainRune chooses a simple character of a class, which is given as pairs of bounds.
func plainRune(class []rune) rune {
	for _, want := range "a0A_-" {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= want && want <= class[i+1] {
				return want
			}
		}
	}
	return append(class, 'a')[0]
}
