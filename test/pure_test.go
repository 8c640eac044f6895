package test

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPackagesTestedWithoutTheRaceDetectorShareNothing reads the Makefile's list of packages with pure
// functions. Such a package starts no goroutine, makes no channel and holds no lock, in its tests neither.
func TestPackagesTestedWithoutTheRaceDetectorShareNothing(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(makefile), "\nPURE     := ")
	list, _, ended := strings.Cut(list, "\n# ")
	if !found || !ended {
		t.Fatal("the Makefile has no list PURE")
	}
	list = strings.NewReplacer("$\\\n  ", "", "$$", "$").Replace(list)
	pure, err := regexp.Compile("^(" + strings.TrimSpace(list) + ")")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, s := range sources(t) {
		if !pure.MatchString(s.dir()) {
			continue
		}
		checked++
		for _, spec := range s.file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if name == "sync" || name == "sync/atomic" || strings.HasPrefix(name, "github.com/sourcegraph/conc") {
				t.Errorf("%s imports %s: take its package out of PURE in the Makefile", s.path, name)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.ChanType:
				t.Errorf("%s shares data between goroutines: take its package out of PURE in the Makefile",
					fileSet.Position(n.Pos()))
			}
			return true
		})
	}
	if checked < 100 {
		t.Errorf("PURE names %d files; the pattern no longer matches what it should", checked)
	}
}
