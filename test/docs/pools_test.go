package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shared is how docs/limits.md names the bounded channels and the lists of latest values of each
// file. Those with an empty name hold nothing of any owner.
var shared = map[string]string{
	"actors/engine/sink.go":            "pieces of a reply that wait for its client",
	"actors/flow/registry.go":          "requests that have ended",
	"cmd/stagedoor/serve.go":           "", // signals of the system
	"cmd/stagedoor/telemetry/queue.go": "spans that wait for the exporter",
	"http/text/items.go":               "ids of output items",
	"providers/mask/decode.go":         "masks that are checked or converted",
	"providers/sandbox/picture.go":     "pictures that the simulator draws",
	"state/load.go":                    "", // it ends before anything is served
	"state/password/password.go":       "passwords that are hashed",
	"state/state.go":                   "commands that wait for the store",
}

// bounds are what a file makes that several owners may share.
type bounds struct {
	pools  []string // the names of the constants that pools are made with
	queues bool
}

// boundsOf returns the pools of a file, and whether it makes a channel of more than one place or a
// list of latest values.
func boundsOf(file *ast.File) (b bounds) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch made := call.Fun.(type) {
		case *ast.Ident:
			if made.Name != "make" || len(call.Args) != 2 {
				break
			}
			size, literal := call.Args[1].(*ast.BasicLit)
			small := literal && (size.Value == "0" || size.Value == "1")
			if _, channel := call.Args[0].(*ast.ChanType); channel && !small {
				b.queues = true
			}
		case *ast.IndexExpr:
			if isOfShare(made.X, "NewLatest") {
				b.queues = true
			}
		case *ast.SelectorExpr:
			if !isOfShare(made, "New") {
				break
			}
			name := ""
			if constant, ok := call.Args[0].(*ast.SelectorExpr); ok && isOfShare(constant, constant.Sel.Name) {
				name = constant.Sel.Name
			}
			b.pools = append(b.pools, name)
		}
		return true
	})
	return b
}

// isOfShare reports whether an expression is a name of the package share.
func isOfShare(x ast.Expr, name string) bool {
	selector, ok := x.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	of, ok := selector.X.(*ast.Ident)
	return ok && of.Name == "share"
}

// poolNames returns the names of the pools that state/share declares, by their constants.
func poolNames(t *testing.T, root string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "state/share/share.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]string)
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			spec := s.(*ast.ValueSpec)
			if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
				names[spec.Names[0].Name] = strings.Trim(value.Value, `"`)
			}
		}
	}
	return names
}

// unrefused are the pools that refuse no request.
var unrefused = []string{"webhooks", "tries"}

// TestEveryPoolIsListed: docs/limits.md has a row for each pool and for each bounded channel and
// list of latest values of the program, and docs/errors.md has the code of each pool.
func TestEveryPoolIsListed(t *testing.T) {
	root := filepath.Dir(folder(t))
	all := pages(t)
	limits, names := all["limits.md"], poolNames(t, root)
	made, found := make(map[string]bool), make(map[string]bool)
	for _, room := range []string{"cmd", "http", "actors", "state", "providers"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			path := filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))
			b := boundsOf(file)
			for _, pool := range b.pools {
				if made[names[pool]] = true; names[pool] == "" {
					t.Errorf("%s makes a pool whose name is no constant of state/share", path)
				}
			}
			if b.queues {
				found[path] = true
				if row, ok := shared[path]; !ok || row != "" && !strings.Contains(limits, "| "+row+" |") {
					t.Errorf("docs/limits.md has no row for the bounded channel or list of %s", path)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if !made[name] {
			t.Errorf("no pool is made with the name %q", name)
		}
		if !strings.Contains(limits, "| `"+name+"` |") {
			t.Errorf("docs/limits.md has no row for the pool %q", name)
		}
		refuses := strings.Contains(all["errors.md"], "`"+name+"_share_exceeded`")
		if refuses == slices.Contains(unrefused, name) {
			t.Errorf("docs/errors.md explains %s_share_exceeded: %v", name, refuses)
		}
	}
	for path := range shared {
		if !found[path] {
			t.Errorf("%s has no bounded channel or list any more: take it from the list", path)
		}
	}
}
