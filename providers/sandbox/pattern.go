package sandbox

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

const longestPattern = 1000

// matchPattern makes a string that matches a pattern and has a length between two bounds. ok is false if it finds none,
// and for patterns that Go's regular expressions do not know.
func matchPattern(pattern string, least, most int) (_ string, ok bool) {
	if len(pattern) > longestPattern {
		return "", false
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	check, err := regexp.Compile(pattern)
	if err != nil {
		return "", false
	}
	// More repetitions make a longer string. The first one that is long enough wins.
	for extra := range 70 {
		g := growth{extra: extra}
		g.write(tree, 0)
		s := g.b.String()
		if pad := least - utf8.RuneCountInString(
			s,
		); pad > 0 && extra == 0 &&
			check.MatchString(s+strings.Repeat("x", pad)) {
			s += strings.Repeat("x", pad)
		}
		if n := utf8.RuneCountInString(s); n >= least && n <= most && check.MatchString(s) {
			return s, true
		}
		if g.b.Len() > most {
			break
		}
	}
	return "", false
}

// growth writes a match with extra repetitions.
type growth struct {
	b     strings.Builder
	extra int
}

func (g *growth) write(re *syntax.Regexp, depth int) {
	if g.b.Len() > longestText || depth > 100 {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		g.b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		g.b.WriteRune(plain(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		g.b.WriteByte('a')
	case syntax.OpCapture:
		g.write(re.Sub[0], depth+1)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			g.write(sub, depth+1)
		}
	case syntax.OpAlternate:
		g.write(re.Sub[0], depth+1)
	case syntax.OpStar:
		g.repeat(re.Sub[0], 0, -1, depth)
	case syntax.OpPlus:
		g.repeat(re.Sub[0], 1, -1, depth)
	case syntax.OpQuest:
		g.repeat(re.Sub[0], 0, 1, depth)
	case syntax.OpRepeat:
		g.repeat(re.Sub[0], re.Min, re.Max, depth)
	}
}

func (g *growth) repeat(re *syntax.Regexp, least, most, depth int) {
	n := least + g.extra
	if most >= 0 {
		n = min(n, most)
	}
	for range n {
		if g.b.Len() > longestText {
			return
		}
		g.write(re, depth+1)
	}
}

// plain chooses a simple character of a class, which is given as pairs of bounds.
func plain(class []rune) rune {
	for _, want := range "a0A_-" {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= want && want <= class[i+1] {
				return want
			}
		}
	}
	if len(class) == 0 {
		return 'a'
	}
	return class[0]
}
