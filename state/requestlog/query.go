package requestlog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Query selects records. The zero value of a field selects all.
type Query struct {
	Owner    string
	From, To time.Time // of the beginning; To is excluded
	Before   int64     // only records before this place: the At of the last record of a page
	Terms    []Term
	Limit    int
}

// Term is one condition. All terms of a query must hold.
type Term struct {
	// Field is one of Fields, or "" for a word that may be in any text.
	Field string
	Text  string
	// Operator is >, >=, <, <= or = for a number, whose value is Number.
	Operator string
	Number   int64
}

// Bounds of a query that a person types.
const (
	MaxText  = 500
	maxTerms = 16
)

// texts are the fields that are searched for words, and numbers those that are compared, with the units of one.
var (
	texts   = []string{"id", "user", "key", "model", "provider", "api", "error", "loss"}
	numbers = map[string]float64{"cost": 1e6, "took": 1e6, "first": 1e6, "queued": 1e6, "in": 1, "out": 1,
		"attempts": 1}
	states = []string{"failed", "slow", "lossy", "degraded", "retried"}
	// wholes are the texts that are compared as a whole, ignoring case.
	wholes = []string{"group", "app", "node"}
)

// Number returns the value of a field that can be compared, in micro-dollars, microseconds or pieces.
func (r *Record) Number(field string) int64 {
	switch field {
	case "cost":
		return r.Cost
	case "took":
		return r.Took.Microseconds()
	case "first":
		return r.First.Microseconds()
	case "queued":
		return r.Queued.Microseconds()
	case "in":
		return r.Input
	case "out":
		return r.Output
	}
	return int64(r.Attempts)
}

// Numbers returns the fields that can be compared, in alphabetical order.
func Numbers() []string {
	return []string{"attempts", "cost", "first", "in", "out", "queued", "took"}
}

// Parse reads what a person typed: words, and conditions such as user:bob, status:429, status:5xx, cost:>0.10 (in
// dollars), took:>5 (in seconds), loss:tools and is:failed. A word matches the beginnings of words, and the text of a
// field whole words unless a star follows it. Quotes keep a text with spaces together. The error is meant for the
// person.
func Parse(text string) ([]Term, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("the search is longer than %d characters", MaxText)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("the search is not valid UTF-8")
	}
	var terms []Term
	for _, word := range split(text) {
		t, err := term(word)
		if err != nil {
			return nil, err
		}
		if len(tokens(t.Text)) == 0 && t.Operator == "" {
			continue // only punctuation
		}
		if terms = append(terms, t); len(terms) > maxTerms {
			return nil, fmt.Errorf("the search has more than %d conditions", maxTerms)
		}
	}
	return terms, nil
}

// split divides at spaces that are not in quotes, and removes the quotes.
func split(text string) (words []string) {
	quoted, started := false, false
	var word strings.Builder
	for _, c := range text {
		switch {
		case c == '"':
			quoted, started = !quoted, true
		case unicode.IsSpace(c) && !quoted:
			if started {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteRune(c)
			started = true
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words
}

// term returns what one word of a query says. A word with a colon is a search for text if what stands before the
// colon cannot be the name of a field, so that addresses and times can be pasted.
func term(word string) (Term, error) {
	name, value, found := strings.Cut(word, ":")
	name = strings.ToLower(name)
	unit, number := numbers[name]
	switch {
	case !found, value == "":
		return Term{Text: word}, nil
	case slices.Contains(texts, name), slices.Contains(wholes, name):
		return Term{Field: name, Text: value}, nil
	case number:
		return comparison(name, value, unit)
	case name == "is":
		if !slices.Contains(states, value) {
			return Term{}, fmt.Errorf("is: must be one of %s", strings.Join(states, ", "))
		}
		return Term{Field: name, Text: value}, nil
	case name == "status":
		return status(value)
	}
	if strings.ContainsAny(name, "/.-_ ") || !isWord(name) {
		return Term{Text: word}, nil // an id, an address or a time and not a field
	}
	return Term{}, fmt.Errorf("%s: is no field of the log; it has %s, %s, status, is, %s", name,
		strings.Join(texts, ", "), strings.Join(wholes, ", "), strings.Join(Numbers(), ", "))
}

// isWord reports whether s has letters only.
func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsLetter(c) })
}

// status returns the term for a status or for a class of them.
func status(value string) (Term, error) {
	value = strings.ToLower(value)
	n, err := strconv.Atoi(value)
	if ok := err == nil && n >= 100 && n <= 599; !ok && value != "4xx" && value != "5xx" {
		return Term{}, errors.New("status: must be a number from 100 to 599, 4xx or 5xx")
	}
	if err == nil {
		value = strconv.Itoa(n) // without a sign or zeros
	}
	return Term{Field: "status", Text: value}, nil
}

// comparison returns the term for a number with an optional operator. Dollars and seconds may have their sign.
func comparison(name, value string, unit float64) (Term, error) {
	operator, number := "=", value
	for _, o := range []string{">=", "<=", ">", "<", "="} {
		if rest, ok := strings.CutPrefix(value, o); ok {
			operator, number = o, rest
			break
		}
	}
	f, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(number, "$"), "s"), 64)
	if err != nil || f < 0 || f*unit > math.MaxInt64/4 || math.IsNaN(f) {
		return Term{}, fmt.Errorf("%s: must be a number, for example %s:>1", name, name)
	}
	return Term{Field: name, Operator: operator, Number: int64(math.Round(f * unit))}, nil
}

// Holds reports whether a number satisfies a comparison.
func (t *Term) Holds(n int64) bool {
	switch t.Operator {
	case ">":
		return n > t.Number
	case ">=":
		return n >= t.Number
	case "<":
		return n < t.Number
	case "<=":
		return n <= t.Number
	}
	return n == t.Number
}

// The full-text index has a column for each of texts and one for marks. A mark is a word that stands for a state, a
// status or the size of a number, so that one index serves all conditions and the newest records that satisfy several
// of them are found without reading the others.

// words returns the texts of a record by which it is found, one for each of texts and in their order.
func (r *Record) words() []string {
	key := r.Key + " " + r.KeyName
	model := r.Model
	if r.Upstream != r.Model {
		model += " " + r.Upstream
	}
	providers, failures := []string{r.Provider}, []string{r.Code, r.Error, r.Reason}
	add := func(all *[]string, text string) {
		if !slices.Contains(*all, text) {
			*all = append(*all, text)
		}
	}
	for i := range r.Tries {
		add(&providers, r.Tries[i].Provider)
		add(&failures, r.Tries[i].Failure)
	}
	return []string{r.ID, r.User, key, model, strings.Join(providers, " "), r.Shape, strings.Join(failures, " "),
		r.Losses + " " + r.Degraded}
}

// kindMarks returns the words that stand for what a record has in common with others.
func (r *Record) kindMarks() (all []string) {
	all = append(all, ownerMark(r.Owner))
	for i, text := range [...]string{r.Group, r.App, r.Node} {
		if text != "" {
			all = append(all, wholeMark(wholes[i], text))
		}
	}
	all = append(all, "status"+strconv.Itoa(r.Status))
	if class := r.Status / 100; class >= 4 { // a search for another class is refused
		all = append(all, "status"+strconv.Itoa(class)+"xx")
	}
	for i, is := range [...]bool{r.Failed(), r.Slow(), r.Losses != "", r.Degraded != "", r.Attempts > 1} {
		if is {
			all = append(all, "is"+states[i])
		}
	}
	return all
}

// numberMarks returns the words that stand for the sizes of the numbers of a record.
func (r *Record) numberMarks() (all []string) {
	for _, field := range Numbers() {
		all = append(all, field+strconv.Itoa(magnitude(r.Number(field))))
	}
	return all
}

// KindColumns returns the columns of an index of kinds.
func KindColumns() []string { return append(slices.Clone(texts[1:]), "marks") }

// KindWords returns the text of each of KindColumns. Records with the same owner, the same AppendKind and the same Slow
// have the same words.
func (r *Record) KindWords() []string { return append(r.words()[1:], strings.Join(r.kindMarks(), " ")) }

// ownerMark is a word that no other owner has.
func ownerMark(owner string) string { return "owner" + hex.EncodeToString([]byte(owner)) }

// wholeMark is a word that only the same text of a field has.
func wholeMark(field, text string) string {
	return field + hex.EncodeToString([]byte(strings.ToLower(text)))
}

// magnitude returns the half octave of a number, which grows with the number up to largest.
func magnitude(n int64) int {
	if n <= 1 {
		return int(max(n, 0))
	}
	length := bits.Len64(uint64(n))
	return min(2*length+int(n>>(length-2)&1), largest)
}

// largest is the magnitude of all numbers from 2^40 on: of a million dollars and of twelve days. A comparison names all
// magnitudes that may satisfy it, so there should be few.
const largest = 2 * 41

// condition is one of those that all must hold: the record has one of the marks or, in one of the columns, the words in
// their order, the last of which may be the beginning of a word if part is set.
type condition struct {
	marks, columns, words []string
	part                  bool
	number                bool   // the marks are those of a number
	id                    string // with which the id may begin instead, or which it may be if part is not set
}

// conditions returns those of a query that the index can answer. Numbers have to be compared in what it finds.
func (q *Query) conditions() (all []condition) {
	mark := func(marks ...string) { all = append(all, condition{marks: marks}) }
	if q.Owner != "" {
		mark(ownerMark(q.Owner))
	}
	for i := range q.Terms {
		t := &q.Terms[i]
		begins := strings.HasSuffix(t.Text, "*")
		switch {
		case t.Operator != "":
			all = append(all, condition{marks: t.magnitudes(), number: true})
		case t.Field == "is", t.Field == "status":
			mark(t.Field + t.Text)
		case slices.Contains(wholes, t.Field):
			mark(wholeMark(t.Field, t.Text))
		case t.Field == "id":
			all = append(all, condition{columns: texts[:1], words: tokens(t.Text), part: begins,
				id: strings.TrimSuffix(t.Text, "*")})
		case t.Field != "":
			all = append(all, condition{columns: []string{t.Field}, words: tokens(t.Text), part: begins})
		default:
			all = append(all, condition{columns: texts, words: tokens(t.Text), part: true,
				id: strings.TrimSuffix(t.Text, "*")})
		}
	}
	return all
}

// magnitudes returns the marks of all numbers that may satisfy a comparison.
func (t *Term) magnitudes() []string {
	from, to := magnitude(t.Number), magnitude(t.Number)
	switch t.Operator[0] {
	case '>':
		to = largest
	case '<':
		from = 0
	}
	all := make([]string, 0, to-from+1)
	for m := from; m <= to; m++ {
		all = append(all, t.Field+strconv.Itoa(m))
	}
	return all
}

// KindCondition is a condition that a record satisfies by its kind or by its id.
type KindCondition struct {
	// Match finds the kinds in the language of SQLite's full-text index. It is "" if no kind satisfies the condition.
	Match string
	// ID is the beginning that the id may have instead, or the whole id if Whole is set. It is "" if ids do not count.
	ID    string
	Whole bool
}

// KindConditions returns all conditions of a query but those of numbers. All of them must hold.
func (q *Query) KindConditions() (all []KindCondition) {
	for _, c := range q.conditions() {
		switch {
		case c.number:
		case c.marks != nil:
			all = append(all, KindCondition{Match: "marks : (" + strings.Join(c.marks, " OR ") + ")"})
		case len(c.columns) == 1 && c.id != "":
			all = append(all, KindCondition{ID: c.id, Whole: !c.part})
		default:
			in := "- marks"
			if len(c.columns) == 1 {
				in = c.columns[0]
			}
			phrase := `"` + strings.Join(c.words, " ") + `"`
			if c.part {
				phrase += "*" // the index reads all words that begin so
			}
			all = append(all, KindCondition{Match: in + " : " + phrase, ID: c.id, Whole: !c.part})
		}
	}
	return all
}

// tokens divides a text as the index does: into letters, with their combining marks, and digits.
func tokens(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsNumber(c) && !unicode.Is(unicode.Mn, c)
	})
}
