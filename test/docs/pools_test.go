package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shared holds the names that docs/limits.md gives to the bounded channels, maps and lists of latest values of each
// file. Those with an empty name hold nothing that several owners share.
var shared = map[string]string{
	"actors/alerts/watcher.go":         "keys, users and groups whose spending alerts have not looked at",
	"actors/engine/firstpieces.go":     "targets whose times to the first piece are kept",
	"actors/engine/sink.go":            "pieces of a reply that wait for its client",
	"actors/flow/refused.go":           "keys whose refused requests are counted",
	"actors/flow/registry.go":          "requests that have ended",
	"actors/flow/spans.go":             "requests whose spans are kept for the flow page",
	"actors/requests/recorder.go":      "", // the pool "request_log"
	"actors/recording/recording.go":    "requests that a recording keeps",
	"actors/throttle/cooling.go":       "models of a provider that cool down",
	"actors/throttle/keys.go":          "keys whose rates are counted",
	"actors/tokens/limiter.go":         "accounts, addresses and apps with failed sign-ins",
	"actors/webhook/turns.go":          "", // the pool "tries"
	"cmd/stagedoor/sqlite/kinds.go":    "kinds of requests that the writer of the log of requests remembers",
	"cmd/stagedoor/serve.go":           "", // signals of the system
	"cmd/stagedoor/signatures.go":      "signatures of tool calls",
	"cmd/stagedoor/telemetry/queue.go": "spans that wait for the exporter",
	"cmd/stagedoor/telemetry/tail.go":  "", // spans that end late are lost
	"http/flow/joined.go":              "flow pages at other gateways",
	"http/flow/lanes.go":               "requests in the lanes of one open flow page",
	"http/nodes/cluster.go":            "connections of other gateways",
	"http/text/items.go":               "ids of output items",
	"http/web/portal/sent.go":          "forms that users have sent",
	"http/web/portal/spending.go":      "", // rows of one answer
	"providers/sandbox/picture.go":     "pictures that the simulator draws",
	"providers/upstream/keys.go":       "keys of a provider that rest for a model",
	"providers/upstream/sse.go":        "", // of one stream
	"state/load.go":                    "", // it ends before anything is served
	"state/password/password.go":       "", // the pool "passwords"
	"state/state.go":                   "commands that wait for the store",
	"state/money/usage.go":             "", // rows of one answer
}

// bounds lists the pools, channels and maps of a file that several owners may share.
type bounds struct {
	pools  []string // the names of the constants that pools are made with
	queues bool     // there is a bounded channel, map or list of latest values
}

// boundsOf returns the pools of a file, and whether it makes a channel of more than one place or a
// list of latest values, or bounds one of the maps of its package.
func boundsOf(file *ast.File, fields map[string]bool) (b bounds) {
	var local map[string]bool
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			local = maps.Clone(fields)
			addMaps(local, n)
		case *ast.BinaryExpr:
			b.queues = b.queues || isBound(n, local, fields)
		}
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
			if isOfShare(made.X, "NewLatest") || isOfShare(made.X, "NewCache") {
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

// mapsOf returns the names of the fields of structs and of the variables of the package that are maps.
func mapsOf(files []*ast.File) map[string]bool {
	maps := make(map[string]bool)
	for _, file := range files {
		for _, d := range file.Decls {
			if group, ok := d.(*ast.GenDecl); ok {
				addMaps(maps, group)
			}
		}
	}
	return maps
}

// addMaps adds the names of the fields, parameters and variables below a node that are maps.
func addMaps(maps map[string]bool, below ast.Node) {
	ast.Inspect(below, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				maps[name.Name] = maps[name.Name] || isMap(n.Type)
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				maps[name.Name] = maps[name.Name] || isMap(n.Type) || i < len(n.Values) && isMap(n.Values[i])
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if name, ok := to.(*ast.Ident); ok && i < len(n.Rhs) && isMap(n.Rhs[i]) {
					maps[name.Name] = true
				}
			}
		}
		return true
	})
}

// isMap reports whether an expression is the type of a map, a literal of one, or a call that makes one.
func isMap(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.MapType:
		return true
	case *ast.CompositeLit:
		return isMap(x.Type)
	case *ast.CallExpr:
		made, ok := x.Fun.(*ast.Ident)
		return ok && made.Name == "make" && isMap(x.Args[0])
	}
	return false
}

// isBound reports whether a comparison is one of the length of a map with a bound. Small numbers are
// none, because they ask whether the map is empty. local has the maps of the function.
func isBound(comparison *ast.BinaryExpr, local, fields map[string]bool) bool {
	switch comparison.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
	default:
		return false
	}
	if number, ok := comparison.Y.(*ast.BasicLit); ok && len(number.Value) == 1 {
		return false
	}
	call, ok := comparison.X.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	if of, ok := call.Fun.(*ast.Ident); !ok || of.Name != "len" {
		return false
	}
	switch measured := call.Args[0].(type) {
	case *ast.Ident:
		return local[measured.Name]
	case *ast.SelectorExpr:
		return fields[measured.Sel.Name]
	}
	return false
}

// TestBoundsOfMapsAreFound shows which comparisons count as the bound of a map.
func TestBoundsOfMapsAreFound(t *testing.T) {
	const source = "package p\n\ntype cache struct{ byKey map[string]int; list []int }\n\n" +
		"func (c *cache) f(most int) bool { known := make(map[int]bool); return %s }\n"
	for expression, want := range map[string]bool{
		"len(c.byKey) >= most": true, "most < cap(c.list)": false, "len(known) == 4096": true,
		"len(c.byKey) == 0": false, "len(c.list) >= most": false, "len(known)+1 > 3": false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", strings.Replace(source, "%s", expression, 1), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := boundsOf(file, mapsOf([]*ast.File{file})).queues; got != want {
			t.Errorf("%s: got %v, want %v", expression, got, want)
		}
	}
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

// sources returns the files of one folder that are no tests, by their names.
func sources(dir string) (map[string]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	files := make(map[string]*ast.File)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}
	return files, err
}

// unrefused are the pools that refuse no request.
var unrefused = []string{"webhooks", "tries", "usage", "replies", "request_log"}

// TestEveryPoolIsListed: docs/limits.md has a row for each pool and for each bounded channel, map
// and list of latest values of the program, and docs/errors.md has the code of each pool.
func TestEveryPoolIsListed(t *testing.T) {
	root := filepath.Dir(folder(t))
	all := pages(t)
	limits, names := all["limits.md"], poolNames(t, root)
	made, found := make(map[string]bool), make(map[string]bool)
	for _, room := range []string{"cmd", "http", "actors", "state", "providers"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() || entry.Name() == "testdata" {
				return err
			}
			files, err := sources(name)
			known := mapsOf(slices.Collect(maps.Values(files)))
			for name, file := range files {
				path := filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))
				b := boundsOf(file, known)
				for _, pool := range b.pools {
					if made[names[pool]] = true; names[pool] == "" {
						t.Errorf("%s makes a pool whose name is no constant of state/share", path)
					}
				}
				if b.queues {
					found[path] = true
					if row, ok := shared[path]; !ok || row != "" && !strings.Contains(limits, "| "+row+" |") {
						t.Errorf("docs/limits.md has no row for the bounded channel, map or list of %s", path)
					}
				}
			}
			return err
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
			t.Errorf("%s has no bounded channel, map or list any more: take it from the list", path)
		}
	}
}
