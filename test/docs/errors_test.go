package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// makers are the folders whose errors reach clients. The simulator makes up those of
// a vendor.
var makers = []string{"http", "actors", "providers/dialogue", "providers/upstream", "providers/shapes"}

// hidden are codes that no client meets, with where they are seen.
var hidden = map[string]string{
	"not_running": "the operator's own commands, on the machine itself",
	"error":       "the list of requests that ended, where a provider gave no code",
}

// codesOf are the codes of a file's errors: what is given to a field named Code in a
// literal or an assignment.
func codesOf(file *ast.File) []string {
	var codes []string
	take := func(name ast.Expr, value ast.Expr) {
		id, ok := name.(*ast.Ident)
		if sel, selected := name.(*ast.SelectorExpr); selected {
			id, ok = sel.Sel, true
		}
		if lit, text := value.(*ast.BasicLit); ok && text && id.Name == "Code" && lit.Kind == token.STRING {
			if code, err := strconv.Unquote(lit.Value); err == nil && code != "" {
				codes = append(codes, code)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			take(n.Key, n.Value)
		case *ast.AssignStmt:
			for i := range min(len(n.Lhs), len(n.Rhs)) {
				take(n.Lhs[i], n.Rhs[i])
			}
		}
		return true
	})
	return codes
}

func TestEveryErrorCodeIsExplained(t *testing.T) {
	page := pages(t)["errors.md"]
	root := filepath.Dir(folder(t))
	found := 0
	for _, maker := range makers {
		err := filepath.WalkDir(filepath.Join(root, maker), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, code := range codesOf(file) {
				found++
				if hidden[code] == "" && !strings.Contains(page, "`"+code+"`") {
					t.Errorf("docs/errors.md does not explain %s of %s", code, strings.TrimPrefix(name, root+"/"))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Fatal("no codes found")
	}
}
