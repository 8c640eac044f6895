package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stagedoor/providers/shapes/registry"
)

// TestNoCodeNamesAShape forbids what would make a new shape change files outside its folder: a
// constant, a comparison, a case or the key of a map that holds the name of a shape. A shape's own
// folder has the one constant. Code elsewhere asks for Traits and other facts of a Descriptor.
func TestNoCodeNamesAShape(t *testing.T) {
	names := map[string]bool{}
	for _, name := range registry.Names() {
		names[name] = true
	}
	declared := map[string]string{}
	for _, s := range sources(t) {
		if s.test() || s.room() == "test" || slices.Contains(testSupport, s.dir()) {
			continue
		}
		own, _ := shapeOf(s.dir(), "providers/shapes/")
		for _, lit := range shapeNames(s.file) {
			name, err := strconv.Unquote(lit.Value)
			switch {
			case err != nil || !names[name]:
			case name != own:
				t.Errorf("%s: names the shape %s", fileSet.Position(lit.Pos()), name)
			case declared[name] != "":
				t.Errorf("%s: names the shape %s again, after %s", fileSet.Position(lit.Pos()), name, declared[name])
			default:
				declared[name] = fileSet.Position(lit.Pos()).String()
			}
		}
	}
	for name := range names {
		if declared[name] == "" {
			t.Errorf("the folder of shape %s does not declare its name", name)
		}
	}
}

// shapeNames returns the literals of a file that stand where a value of type dialogue.Shape does.
func shapeNames(file *ast.File) (found []*ast.BasicLit) {
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			found = append(found, lit)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr: // dialogue.Shape("chat")
			if isShapeType(n.Fun) && len(n.Args) == 1 {
				add(n.Args[0])
			}
		case *ast.ValueSpec: // const Chat dialogue.Shape = "chat"
			if isShapeType(n.Type) {
				for _, v := range n.Values {
					add(v)
				}
			}
		case *ast.CompositeLit: // map[dialogue.Shape]T{"chat": ...}, []dialogue.Shape{"chat"}
			switch of := n.Type.(type) {
			case *ast.MapType:
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok && isShapeType(of.Key) {
						add(pair.Key)
					} else if ok && isShapeType(of.Value) {
						add(pair.Value)
					}
				}
			case *ast.ArrayType:
				for _, e := range n.Elts {
					if isShapeType(of.Elt) {
						add(e)
					}
				}
			}
		case *ast.KeyValueExpr: // Inbound: "chat"
			if holdsShape(n.Key) {
				add(n.Value)
			}
		case *ast.BinaryExpr: // req.Inbound == "chat"
			if n.Op == token.EQL || n.Op == token.NEQ {
				if holdsShape(n.X) {
					add(n.Y)
				} else if holdsShape(n.Y) {
					add(n.X)
				}
			}
		case *ast.SwitchStmt: // switch req.Inbound { case "chat":
			if n.Tag != nil && holdsShape(n.Tag) {
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						add(e)
					}
				}
			}
		}
		return true
	})
	return found
}

func isShapeType(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Shape" && isName(sel.X, "dialogue")
}

// holdsShape reports whether an expression has a name that values of type dialogue.Shape have.
func holdsShape(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return holdsShape(e.Sel)
	case *ast.CallExpr:
		return len(e.Args) == 1 && isName(e.Fun, "string") && holdsShape(e.Args[0])
	case *ast.Ident:
		switch strings.ToLower(e.Name) {
		case "shape", "inbound", "origin":
			return true
		}
	}
	return false
}

func mustParse(t *testing.T, source string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTheNamesOfShapesAreFound checks that the test above finds what it looks for.
func TestShapesCompareNoOtherName(t *testing.T) {
	const source = `package p
const a dialogue.Shape = "one"
var b = map[dialogue.Shape]int{"two": 1}
func f(req *dialogue.Request) bool {
	switch req.Inbound { case "three": return true }
	return req.Origin == "four" || p.Shape != dialogue.Shape("five") || word == "messages"
}`
	var got []string
	for _, lit := range shapeNames(mustParse(t, source)) {
		got = append(got, lit.Value)
	}
	slices.Sort(got)
	if want := []string{`"five"`, `"four"`, `"one"`, `"three"`, `"two"`}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// wideInterfaces lists the interfaces with more than maxMethods methods, with the reason.
var wideInterfaces = map[string]string{
	"state/journal.Store":  "the contract of a durable store, with one conformance suite",
	"state/journal.Shared": "a Store and the log that nodes append to, with one conformance suite",
}

const maxMethods = 6

// TestInterfacesAreNarrow keeps interfaces small enough that a test can implement each, and that no
// type must have methods that only some callers need. Embedded interfaces count with their
// methods.
func TestInterfacesAreNarrow(t *testing.T) {
	kinds := map[string]*ast.InterfaceType{} // by folder and name
	for _, s := range sources(t) {
		if s.test() || s.room() == "test" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if kind, ok := spec.Type.(*ast.InterfaceType); ok {
					kinds[s.dir()+"."+spec.Name.Name] = kind
				}
			}
			return true
		})
	}
	var methods func(dir string, kind *ast.InterfaceType) int
	methods = func(dir string, kind *ast.InterfaceType) (n int) {
		for _, m := range kind.Methods.List {
			if n += len(m.Names); len(m.Names) > 0 {
				continue
			}
			if embedded, ok := m.Type.(*ast.Ident); ok && kinds[dir+"."+embedded.Name] != nil {
				n += methods(dir, kinds[dir+"."+embedded.Name])
			}
		}
		return n
	}
	for name, kind := range kinds {
		dir := name[:strings.LastIndexByte(name, '.')]
		n, listed := methods(dir, kind), wideInterfaces[name] != ""
		if n > maxMethods && !listed {
			t.Errorf("%s has %d methods, at most %d are allowed: divide it", name, n, maxMethods)
		}
		if n <= maxMethods && listed {
			t.Errorf("%s has %d methods: take it from the list", name, n)
		}
	}
}

// TestShapesAreComplete checks the shapes that are shipped as the gateway does when it starts.
func TestShapesAreComplete(t *testing.T) {
	for _, s := range registry.All {
		d := registry.Describe(s.Name)
		if d == nil || d.Probe.Path == "" || d.SandboxPath == "" || d.Answer.Text == nil {
			t.Errorf("shape %s: %+v", s.Name, d)
		}
	}
	scopes := registry.Scopes()
	for i, scope := range scopes {
		if scope == "" || slices.Contains(scopes[:i], scope) {
			t.Errorf("scopes %q", scopes)
		}
	}
}
