package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// architectureLines is the length that ARCHITECTURE.md must not exceed, so that it is read in one sitting.
const architectureLines = 260

var (
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	testName = regexp.MustCompile(`^Test[A-Z]\w+$`)
	filePath = regexp.MustCompile(`^(cmd|http|actors|state|providers|test|docs)/[\w./-]+$`)
	goName   = regexp.MustCompile(`(?m)^func (Test[A-Z]\w+)\(`)
)

// TestArchitectureNamesWhatExists reads every file, folder and test that ARCHITECTURE.md and the decisions name.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > architectureLines {
		t.Errorf("ARCHITECTURE.md has %d lines, more than %d", lines, architectureLines)
	}
	texts := map[string]string{"ARCHITECTURE.md": string(text)}
	for name, page := range pages(t) {
		if strings.HasPrefix(name, "decisions/") {
			texts["docs/"+name] = page
		}
	}
	tests := testsOfTheModule(t)
	for name, text := range texts {
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			switch word := m[1]; {
			case testName.MatchString(word) && !tests[word]:
				t.Errorf("%s names the test %s, which does not exist", name, word)
			case filePath.MatchString(word):
				if _, err := os.Stat(filepath.Join("../..", word)); err != nil {
					t.Errorf("%s names %s, which does not exist", name, word)
				}
			}
		}
	}
}

func testsOfTheModule(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(name)
		for _, m := range goName.FindAllStringSubmatch(string(source), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
