package catalog

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"stagedoor/providers/dialogue"
)

// modelFacts says what models can do, by the family and generation in their names. It is made from
// the vendors' pages. A generation keeps the facts of the one before it, so a model that is newer
// than the file is treated as its latest relative. Facts of a word apply to names that have the
// word. What no line states is as the shape's Descriptor.Defaults say.
//
//go:embed models.json
var modelFacts []byte

// modelFamily is one family of models in models.json, such as all models whose names begin with the
// same word.
type modelFamily struct {
	Words       []string          `json:"words"`       // how names of the family begin, apart from what platforms add
	Generations []generationFacts `json:"generations"` // a later one takes precedence
}

// generationFacts holds the facts of a family from a generation of it on.
type generationFacts struct {
	Since string              `json:"since"` // "4.5"; "0" holds for names without a number, too
	Word  string              `json:"word"`  // "": for all names of the family
	Facts CapabilityOverrides `json:"facts"`
	since version
}

// families returns the built-in facts. They are part of the program, so a mistake in them is found
// by every test.
var families = sync.OnceValue(func() []modelFamily {
	var file struct {
		Families []modelFamily `json:"families"`
	}
	if err := json.Unmarshal(modelFacts, &file, json.RejectUnknownMembers(true)); err != nil {
		panic(fmt.Sprintf("catalog: models.json: %v", err))
	}
	for i := range file.Families {
		for j := range file.Families[i].Generations {
			e := &file.Families[i].Generations[j]
			major, minor, _ := strings.Cut(e.Since, ".")
			high, ok := number(major)
			low, _ := number(minor)
			if e.since = high*100 + low; !ok {
				panic(fmt.Sprintf("catalog: models.json: since %q is no generation", e.Since))
			}
		}
	}
	return file.Families
})

// applyFacts changes the defaults of a shape to what is known of a model.
func applyFacts(model string, c *dialogue.Capabilities) {
	model = strings.ToLower(model)
	for _, f := range families() {
		for _, word := range f.Words {
			rest, ok := afterWord(model, word)
			if !ok {
				continue
			}
			v := generation(rest)
			for i := range f.Generations {
				e := &f.Generations[i]
				if v >= e.since && (e.Word == "" || hasWord(rest, e.Word)) {
					e.Facts.apply(c)
				}
			}
			return
		}
	}
}

// separators stand between the words of a model's name.
const separators = "-.@:/_ "

// afterWord returns what follows a word that begins a part of a name. The word may be followed by
// a number at once, as in qwen3.
func afterWord(name, word string) (rest string, ok bool) {
	for at := 0; ; {
		i := strings.Index(name[at:], word)
		if i < 0 {
			return "", false
		}
		start, end := at+i, at+i+len(word)
		begins := start == 0 || strings.IndexByte(separators, name[start-1]) >= 0
		ends := end == len(name) || strings.IndexByte(separators, name[end]) >= 0
		if begins && (ends || isDigit(name[end]) && !isDigit(name[end-1])) {
			return name[end:], true
		}
		at = end
	}
}

// hasWord reports whether word is one of the parts of name between separators. A part of a longer
// word does not count.
func hasWord(name, word string) bool {
	for w := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if w == word {
			return true
		}
	}
	return false
}

// version is a generation as major*100 + minor. 0 is unknown.
type version int

// generation reads the generation in what follows the family's word: the first number, and a
// number directly after it as the minor version. Platforms put prefixes and suffixes around them.
// Dates are no versions: claude-3-5-sonnet-20241022 is 3.5, claude-opus-4-1-20250805 is 4.1.
func generation(name string) version {
	for name != "" {
		var word string
		word, name = cutWord(name)
		major, ok := number(strings.TrimSuffix(strings.TrimPrefix(word, "v"), "o"))
		if !ok {
			continue
		}
		next, _ := cutWord(name)
		minor, _ := number(next)
		if strings.HasSuffix(word, "o") { // gpt-4o-2024-08-06
			minor = 0
		}
		return major*100 + minor
	}
	return 0
}

// cutWord splits at the next separator.
func cutWord(s string) (word, rest string) {
	i := strings.IndexAny(s, separators)
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
		if !isDigit(c) {
			return 0, false
		}
		v = v*10 + version(c-'0')
	}
	return v, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
