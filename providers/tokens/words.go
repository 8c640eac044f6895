package tokens

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestWord bounds the words that are cut into tokens at once, because the time for one grows with the square of its
// length. A longer one, which is no word of a language, is taken as several and may have a token more for each.
const longestWord = 256

// wordEnd returns the end of the word that a text begins with. The tokens of a text are those of its words. What a word
// is, the vendor gives with its vocabulary as an expression: letters, with one other character before them and a short
// ending of English behind them; up to three digits; other characters, with a blank before them and line breaks behind
// them; and white space.
func wordEnd(s string) int {
	end := lettersEnd(s)
	if end == 0 {
		end = digitsEnd(s)
	}
	if end == 0 {
		end = signsEnd(s)
	}
	if end == 0 {
		end = blanksEnd(s)
	}
	if end <= longestWord {
		return end
	}
	for end = longestWord; end > longestWord-utf8.UTFMax && !utf8.RuneStart(s[end]); {
		end--
	}
	return end
}

var (
	upperFirst = []*unicode.RangeTable{unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M}
	lowerLast  = []*unicode.RangeTable{unicode.Ll, unicode.Lm, unicode.Lo, unicode.M}
)

func isUpper(r rune) bool {
	if r < utf8.RuneSelf {
		return 'A' <= r && r <= 'Z'
	}
	return unicode.In(r, upperFirst...)
}

func isLower(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z'
	}
	return unicode.In(r, lowerLast...)
}

// lettersEnd returns the end of a word of letters: some in upper case, some in lower case, and what shortens an English
// word. It returns 0 if the text begins with none.
func lettersEnd(s string) int {
	before, size := utf8.DecodeRuneInString(s)
	if unicode.IsLetter(before) || unicode.IsNumber(before) || before == '\r' || before == '\n' {
		size = 0
	}
	// A word that ends in upper case is looked for last. Marks are letters without a case and may stand before a word,
	// too.
	for _, last := range []func(rune) bool{isLower, isUpper} {
		for _, begin := range []int{size, 0} {
			if end := caseEnd(s, begin, last); end > 0 {
				return end + shortened(s[end:])
			}
		}
	}
	return 0
}

// caseEnd returns the end of letters from begin on: first those that may be in upper case, then those that may be in
// lower case. The last of them is of a class, for which a letter without a case is both. It returns 0 without such a
// letter.
func caseEnd(s string, begin int, last func(rune) bool) int {
	end, found := begin, 0
	for _, r := range s[begin:] {
		if !isUpper(r) {
			break
		}
		end += utf8.RuneLen(r)
		if last(r) {
			found = end
		}
	}
	for _, r := range s[end:] {
		if !isLower(r) {
			break
		}
		end += utf8.RuneLen(r)
		found = end
	}
	return found
}

// shortened returns the length of 's, 't, 're, 've, 'm, 'll or 'd in any case.
func shortened(s string) int {
	if !strings.HasPrefix(s, "'") {
		return 0
	}
	for _, short := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'\u017f"} {
		if len(s) >= len(short) && strings.EqualFold(s[:len(short)], short) {
			return len(short)
		}
	}
	return 0
}

func digitsEnd(s string) int {
	n, end := 0, 0
	for _, r := range s {
		if n == 3 || !unicode.IsNumber(r) {
			break
		}
		n, end = n+1, end+utf8.RuneLen(r)
	}
	return end
}

func isSign(r rune) bool {
	return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r)
}

// signsEnd returns the end of characters that are neither letters, digits nor white space.
func signsEnd(s string) int {
	end := 0
	if s[0] == ' ' {
		end = 1
	}
	signs := runEnd(s[end:], isSign)
	if signs == 0 {
		return 0
	}
	end += signs
	return end + runEnd(s[end:], func(r rune) bool { return r == '\r' || r == '\n' || r == '/' })
}

// blanksEnd returns the end of white space: behind its last line break, or else before the blank that belongs to the
// next word.
func blanksEnd(s string) int {
	end := runEnd(s, unicode.IsSpace)
	if last := strings.LastIndexAny(s[:end], "\r\n"); last >= 0 {
		return last + 1
	}
	if end == len(s) {
		return end
	}
	if _, size := utf8.DecodeLastRuneInString(s[:end]); size < end {
		return end - size
	}
	return end
}

// runEnd returns the end of the characters of a class that a text begins with.
func runEnd(s string, class func(rune) bool) int {
	end := 0
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		if !class(r) {
			break
		}
		end += size
	}
	return end
}
