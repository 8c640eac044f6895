package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pattern is a route of net/http's ServeMux, with its method.
var pattern = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) (/[^ ]+)$`)

// TestEveryRouteIsDocumented finds the routes that clients with a key or an OAuth client use, as they are written in
// the code, and looks each up in docs/routes.md. The administration API describes itself, and pages lead to pages.
func TestEveryRouteIsDocumented(t *testing.T) {
	page := pages(t)["routes.md"]
	found := 0
	for _, folder := range []string{"http", "providers/shapes"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					return true
				}
				m := pattern.FindStringSubmatch(text)
				if m == nil || !isAPI(m[2]) {
					return true
				}
				found++
				if !strings.Contains(page, m[2]) {
					t.Errorf("%s serves %q, which docs/routes.md does not have", name, text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 20 {
		t.Errorf("only %d routes were found in the code", found)
	}
}

// isAPI reports whether clients of the API use a path. Patterns that end in "..." only refuse or forward.
func isAPI(path string) bool {
	if strings.HasSuffix(path, "...}") || strings.HasSuffix(path, "/") {
		return false
	}
	for _, prefix := range []string{"/v1/", "/v1beta/", "/imagegen/", "/api/", "/healthz", "/readyz", "/metrics"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
