package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stagedoor/test/harness"
)

// phrases are turns that slow a reader down, with the number of lines that contained
// them when they were last counted. A change may lower a number and never raise it. Write
// a full sentence with a subject and a verb instead, in the words of the field:
// CONTRIBUTING.md gives examples.
var phrases = []struct {
	name    string
	has     []string // a line has one of them if the pattern matches, which is found sooner
	pattern *regexp.Regexp
	most    int
}{
	{"nobody", []string{"obody"}, regexp.MustCompile(`\b[Nn]obody\b`), 0},
	{"whoever", []string{"hoever"}, regexp.MustCompile(`\b[Ww]hoever\b`), 0},
	{"somebody, anybody, everybody", []string{"body"}, regexp.MustCompile(`\b([Ss]ome|[Aa]ny|[Ee]very)body\b`), 0},
	{"X is what, X is who", []string{"// "},
		regexp.MustCompile(`// [A-Za-z]\w* (is|are) (what|who|how|where|whether|why|when)\b`), 0},
	{"who asks, what is told", []string{"ho ", "hat "},
		regexp.MustCompile(`\b([Ww]ho|[Ww]hat) (asks|waits|comes|leaves|reads|sends|is told|was told)\b`), 0},
	{"told", []string{"told"}, regexp.MustCompile(`\btold\b`), 0},
	{"door", []string{"oor"}, regexp.MustCompile(`\b[Dd]oors?\b`), 0},
	{"house", []string{"ouse"}, regexp.MustCompile(`\b[Hh]ouse\b`), 0},
	{"pump", []string{"ump"}, regexp.MustCompile(`\b[Pp]umps?\b`), 0},
	{"conduit, painter, purse, shelf, vault, folio, teller, tape",
		[]string{"onduit", "ainter", "urse", "helf", "ault", "olio", "eller", "ape"},
		regexp.MustCompile(`\b([Cc]onduit|[Pp]ainter|[Pp]urse|[Ss]helf|[Vv]ault|[Ff]olio|[Tt]eller|[Tt]ape)s?\b`), 0},
}

// maxColumns is the longest line of Go, with a tab as wide as gofmt shows it.
const maxColumns = 120

// documentedField marks a field of the configuration with its documentation. It is a struct tag, which cannot be wrapped.
const documentedField = " doc:\""

// longLines is the number of lines over maxColumns when they were last counted.
const longLines = 918

// TestWritingIsPlain counts the phrases in everything that is committed as text. The
// documents of other programs and recorded data do not count.
func TestWritingIsPlain(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command("git", "ls-files", "*.go", "*.md", "*.html", "*.js", "*.yaml", "*.sh", "Makefile", ".ci/*")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skipf("not in a git checkout: %v", err)
	}
	counts, long := make([]int, len(phrases)), 0
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		if strings.Contains(name, "testdata/") || name == "test/language_test.go" || name == "CHANGELOG.md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // removed and not committed yet
		}
		for line := range strings.Lines(string(text)) {
			for i := range phrases {
				has := func(part string) bool { return strings.Contains(line, part) }
				if slices.ContainsFunc(phrases[i].has, has) && phrases[i].pattern.MatchString(line) {
					counts[i]++
				}
			}
			if strings.HasSuffix(name, ".go") && columns(line) > maxColumns && !strings.Contains(line, documentedField) {
				long++
			}
		}
	}
	for i, p := range phrases {
		t.Logf("%4d of %4d  %s", counts[i], p.most, p.name)
		if counts[i] > p.most {
			t.Errorf("%d lines contain %q, there were %d: write it plainly", counts[i], p.name, p.most)
		}
	}
	if t.Logf("%4d of %4d  lines over %d columns", long, longLines, maxColumns); long > longLines {
		t.Errorf("%d lines of Go are longer than %d columns, there were %d", long, maxColumns, longLines)
	}
}

// columns is the width of a line with tabs of four columns.
func columns(line string) int {
	line = strings.TrimRight(line, "\r\n")
	return len([]rune(line)) + 3*strings.Count(line, "\t")
}
