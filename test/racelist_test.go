package test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPackagesThatStartGoroutinesRunUnderTheRaceDetector reads the Makefile's list of packages that `make test`
// runs with the race detector, and expects each package there whose code starts a goroutine. The commands are
// left out, because compiling the whole program for the race detector takes too long: `make race` does it.
// Helpers of tests, which import testing, run with the packages that they help.
func TestPackagesThatStartGoroutinesRunUnderTheRaceDetector(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(makefile), "\nRACE     := ")
	list, _, ended := strings.Cut(list, "\n# ")
	if !found || !ended {
		t.Fatal("the Makefile has no list RACE")
	}
	list = strings.NewReplacer("$\\\n  ", "", "$$", "$").Replace(list)
	raced, err := regexp.Compile("^(" + strings.TrimSpace(list) + ")")
	if err != nil {
		t.Fatal(err)
	}
	starting := 0
	for _, s := range sources(t) {
		top, _, _ := strings.Cut(s.dir(), "/")
		if strings.HasSuffix(s.path, "_test.go") || top == "cmd" || top == "test" ||
			slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` }) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if !startsGoroutine(n) {
				return true
			}
			starting++
			if !raced.MatchString(s.dir()) {
				t.Errorf("%s starts a goroutine: add its package to RACE in the Makefile", fileSet.Position(n.Pos()))
			}
			return true
		})
	}
	if starting < 20 {
		t.Errorf("only %d goroutines are started; the search no longer finds them", starting)
	}
}

// startsGoroutine reports whether a node is a go statement, or calls Go of a wait group or a pool.
func startsGoroutine(n ast.Node) bool {
	if call, ok := n.(*ast.CallExpr); ok {
		selector, ok := call.Fun.(*ast.SelectorExpr)
		return ok && selector.Sel.Name == "Go"
	}
	_, ok := n.(*ast.GoStmt)
	return ok
}
