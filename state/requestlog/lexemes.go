package requestlog

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Postgres's full-text search has no columns. A lexeme therefore begins with a letter that names the column, and its
// words are folded here, as SQLite's tokenizer does it by itself: in lower case and without diacritics.

// columnLetter returns the first letter of the lexemes of a column, of which marks is the last.
func columnLetter(column int) byte { return 'a' + byte(column) }

// Lexemes calls each with the lexemes of a record for Postgres, and with their positions from 1 on. Marks have the
// position 0, because no search looks for them in an order. A lexeme may come several times.
func (r *Record) Lexemes(each func(lexeme string, position int)) {
	position := 0
	for column, text := range r.words() {
		for _, word := range tokens(text) {
			if word = fold(word); word != "" {
				position++
				each(string(columnLetter(column))+word, position)
			}
		}
	}
	for _, mark := range append(r.kindMarks(), r.numberMarks()...) {
		each(string(columnLetter(len(texts)))+mark, 0)
	}
}

// TSQuery returns the condition of a query as a tsquery of Postgres over the Lexemes of records, or "" if there is
// none.
func (q *Query) TSQuery() string {
	var all []string
	for _, c := range q.conditions() {
		var either []string
		for _, mark := range c.marks {
			either = append(either, lexeme(len(texts), mark))
		}
		for column, name := range texts {
			if slices.Contains(c.columns, name) {
				either = append(either, c.phrase(column)...)
			}
		}
		if len(either) > 0 {
			// Nested to the right, so that the first alternatives are evaluated first and end the evaluation.
			all = append(all, "("+strings.Join(either, " | (")+strings.Repeat(")", len(either)))
		}
	}
	return strings.Join(all, " & ")
}

// phrase returns the words of a condition one after the other in a column, or nothing if no word is left of them.
func (c *condition) phrase(column int) []string {
	var all []string
	for _, word := range c.words {
		if word = fold(word); word != "" {
			all = append(all, lexeme(column, word))
		}
	}
	if len(all) == 0 {
		return nil
	}
	phrase := strings.Join(all, " <-> ")
	if c.part {
		phrase += ":*"
	}
	return []string{phrase}
}

// lexeme returns a lexeme of a query, which has letters and digits only.
func lexeme(column int, word string) string { return "'" + string(columnLetter(column)) + word + "'" }

// fold returns a word in lower case and without diacritics, or "" if it has nothing else.
func fold(word string) string {
	plain := true
	for i := 0; i < len(word); i++ {
		plain = plain && word[i] < utf8.RuneSelf && (word[i] < 'A' || word[i] > 'Z')
	}
	if plain {
		return word
	}
	return strings.Map(func(c rune) rune {
		if !unicode.IsLetter(c) && !unicode.IsNumber(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, norm.NFD.String(word))
}
