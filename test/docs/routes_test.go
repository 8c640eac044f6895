package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pattern is a route of net/http's ServeMux, with its method.
var pattern = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) (/[^ ]+)$`)

// TestEveryRouteIsDocumented finds the routes that clients with a key or an OAuth client use, as they are written in
// the code, and looks each up in docs/routes.md. TestEveryRouteIsDescribed compares that page with /openapi.json. The
// administration API describes itself, and pages lead to pages.
func TestEveryRouteIsDocumented(t *testing.T) {
	page := pages(t)["routes.md"]
	found := 0
	prefixes := map[string]string{} // constants that other packages use
	for _, folder := range []string{"http", "providers/shapes"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			constants := constantsOf(file, prefixes)
			ast.Inspect(file, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				text := constantOf(e, constants)
				m := pattern.FindStringSubmatch(text)
				if m == nil || !isAPI(m[2]) {
					return true
				}
				found++
				if !strings.Contains(page, "`"+text+"`") {
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

// constantsOf returns the string constants of a file, and adds those that are exported to all.
func constantsOf(file *ast.File, all map[string]string) map[string]string {
	own := maps.Clone(all)
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
			for i, name := range spec.Names {
				if text := constantOf(spec.Values[i], own); text != "" {
					own[name.Name] = text
					if name.IsExported() {
						all[file.Name.Name+"."+name.Name] = text
					}
				}
			}
		}
		return true
	})
	return own
}

// constantOf returns the string that e adds up to, or "".
func constantOf(e ast.Expr, constants map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.Ident:
		return constants[e.Name]
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok {
			return constants[pkg.Name+"."+e.Sel.Name]
		}
	case *ast.BinaryExpr:
		if x, y := constantOf(e.X, constants), constantOf(e.Y, constants); x != "" && y != "" {
			return x + y
		}
	}
	return ""
}

// isAPI reports whether clients of the API use a path. Patterns that end in "..." only refuse or forward.
func isAPI(path string) bool {
	if strings.HasSuffix(path, "...}") || strings.HasSuffix(path, "/") || path == "/api/oauth2/sign-in" ||
		path == "/api/oauth2/consent" { // the last two are pages
		return false
	}
	for _, prefix := range []string{"/v1/", "/v1beta/", "/imagegen/", "/api/", "/.well-known/",
		"/openapi.json", "/healthz", "/readyz", "/metrics"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
