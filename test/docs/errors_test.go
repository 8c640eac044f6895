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

// constructors returns the position of the parameter "code" of each function of package dialogue
// that has one.
func constructors(t *testing.T, root string) map[string]int {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "providers/dialogue/errorcodes.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		at := 0
		for _, field := range f.Type.Params.List {
			for _, name := range field.Names {
				if name.Name == "code" {
					out[f.Name.Name] = at
				}
				at++
			}
		}
	}
	return out
}

// codesOf returns the codes of a file's errors. These are string literals that are assigned to a
// field named Code or passed as the code of a constructor.
func codesOf(file *ast.File, constructors map[string]int) []string {
	var codes []string
	add := func(value ast.Expr) {
		if lit, text := value.(*ast.BasicLit); text && lit.Kind == token.STRING {
			if code, err := strconv.Unquote(lit.Value); err == nil && code != "" {
				codes = append(codes, code)
			}
		}
	}
	take := func(name ast.Expr, value ast.Expr) {
		id, ok := name.(*ast.Ident)
		if sel, selected := name.(*ast.SelectorExpr); selected {
			id, ok = sel.Sel, true
		}
		if ok && id.Name == "Code" {
			add(value)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name, _ := n.Fun.(*ast.Ident)
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				name = sel.Sel
			}
			if at, ok := constructors[nameOf(name)]; ok && at < len(n.Args) {
				add(n.Args[at])
			}
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

func nameOf(id *ast.Ident) string {
	if id == nil {
		return ""
	}
	return id.Name
}

func TestEveryErrorCodeIsExplained(t *testing.T) {
	page := pages(t)["errors.md"]
	root := filepath.Dir(folder(t))
	found, makersOfCodes := 0, constructors(t, root)
	for _, maker := range makers {
		err := filepath.WalkDir(filepath.Join(root, maker), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, code := range codesOf(file, makersOfCodes) {
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
	if found < 60 {
		t.Fatalf("%d codes found: codesOf misses some", found)
	}
}
