package fields

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Rule consumes one value and returns an error if it may not stand there.
type Rule func(r *Reader) error

// Nullable returns a rule that also accepts null, where the documents say "or null".
func Nullable(rule Rule) Rule {
	return func(r *Reader) error {
		if r.Null() {
			return nil
		}
		return rule(r)
	}
}

// Of returns a rule that checks the kind of a value and nothing inside it.
func Of(kind Kind) Rule {
	return func(r *Reader) error {
		if r.Peek() != kind {
			return r.Broken("must be " + kindNames[kind])
		}
		r.Skip()
		return nil
	}
}

var kindNames = [...]string{Invalid: "a value", Null: "null", Bool: "a boolean", Number: "a number",
	String: "a string", Array: "an array", Object: "an object"}

// Between returns a rule for a number in a closed range.
func Between(lo, hi float64) Rule {
	return func(r *Reader) error {
		_, err := r.Float(lo, hi)
		return err
	}
}

// Whole returns a rule for an integer in a closed range.
func Whole(lo, hi int64) Rule {
	return func(r *Reader) error {
		_, err := r.Int(lo, hi)
		return err
	}
}

// UpTo returns a rule for a string of at most n characters.
func UpTo(n int) Rule {
	return func(r *Reader) error { return r.upTo(n) }
}

// OneOf returns a rule for a word of a closed list.
func OneOf(words ...string) Rule {
	return func(r *Reader) error {
		_, err := r.Word(words...)
		return err
	}
}

// Each returns a rule for an array whose elements satisfy rule.
func Each(rule Rule) Rule {
	return func(r *Reader) error {
		return r.Array(func(int) error { return rule(r) })
	}
}

// Stop is the rule for a string or up to four strings.
func Stop(r *Reader) error {
	if r.Peek() == String {
		r.Skip()
		return nil
	}
	if r.Peek() != Array {
		return r.Broken("must be a string or an array of strings")
	}
	n := 0
	err := r.Array(func(i int) error {
		n = i + 1
		return Of(String)(r)
	})
	if err == nil && n > 4 {
		return r.Broken("must not hold more than 4 sequences")
	}
	return err
}

// LogitBias is the rule for an object of token ids with values from -100 to 100.
func LogitBias(r *Reader) error {
	return r.Object(func([]byte) error {
		_, err := r.Float(-100, 100)
		return err
	})
}

// Metadata is the rule for up to 16 pairs of short strings.
func Metadata(r *Reader) error {
	n := 0
	err := r.Object(func(name []byte) error {
		n++
		if characters(name) > 64 {
			return r.Broken("key must not be longer than 64 characters")
		}
		return r.upTo(512)
	})
	if err == nil && n > 16 {
		return r.Broken("must not hold more than 16 pairs")
	}
	return err
}

// Int consumes an integer in a closed range. 1.0 and 1e2 are integers, too.
func (r *Reader) Int(lo, hi int64) (int64, error) {
	rule := func() error {
		switch {
		case lo == math.MinInt64 && hi == math.MaxInt64:
			return r.Broken("must be an integer")
		case hi == math.MaxInt64:
			return r.Broken(fmt.Sprintf("must be an integer of %d or more", lo))
		}
		return r.Broken(fmt.Sprintf("must be an integer between %d and %d", lo, hi))
	}
	if r.Peek() != Number {
		return 0, rule()
	}
	raw := string(r.Skip())
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(raw, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
			return 0, rule()
		}
		n = int64(f)
	}
	if n < lo || n > hi {
		return 0, rule()
	}
	return n, nil
}

// Float consumes a number in a closed range. A number that float64 cannot hold is refused like one outside of the
// range.
func (r *Reader) Float(lo, hi float64) (float64, error) {
	rule := func() error { return r.Broken(fmt.Sprintf("must be a number between %v and %v", lo, hi)) }
	if r.Peek() != Number {
		return 0, rule()
	}
	f, err := strconv.ParseFloat(string(r.Skip()), 64)
	if err != nil || f < lo || f > hi {
		return 0, rule()
	}
	return f, nil
}

// Flag consumes a boolean.
func (r *Reader) Flag() (bool, error) {
	if r.Peek() != Bool {
		return false, r.Broken("must be a boolean")
	}
	return r.Skip()[0] == 't', nil
}

// Text consumes a string and returns it unescaped.
func (r *Reader) Text() (string, error) {
	raw, err := r.Quoted()
	if err != nil {
		return "", err
	}
	return Unquote(raw), nil
}

// Quoted consumes a string and returns its text with the quotes.
func (r *Reader) Quoted() ([]byte, error) {
	if r.Peek() != String {
		return nil, r.Broken("must be a string")
	}
	return r.Skip(), nil
}

// Word consumes a string that must be one of words.
func (r *Reader) Word(words ...string) (string, error) {
	if r.Peek() == String {
		raw := r.Skip()
		in := inner(raw)
		if bytes.IndexByte(in, '\\') >= 0 {
			in = []byte(Unquote(raw))
		}
		for _, word := range words {
			if string(in) == word {
				return word, nil
			}
		}
	}
	return "", r.Broken("must be one of " + strings.Join(words, ", "))
}

// upTo reads a string of at most n characters, which are code points and not bytes.
func (r *Reader) upTo(n int) error {
	raw, err := r.Quoted()
	if err == nil && characters(inner(raw)) > n {
		return r.Broken(fmt.Sprintf("must not be longer than %d characters", n))
	}
	return err
}

// Unquote unescapes a JSON string.
func Unquote(raw []byte) string {
	in := inner(raw)
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	return gjson.ParseBytes(raw).String()
}

// characters returns the number of code points inside a string.
func characters(in []byte) int {
	if bytes.IndexByte(in, '\\') < 0 {
		return utf8.RuneCount(in)
	}
	return utf8.RuneCountInString(gjson.Parse(`"` + string(in) + `"`).String())
}
