package test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// unlimited are functions of gjson that recurse once for each level of a text, without a limit. A few
// megabytes of brackets end the process with them, and recover does not help. fields.Valid and
// fields.ValidLenient do the same work within limits.
var unlimited = map[string]bool{"Valid": true, "ValidBytes": true}

// boundedWalks lists the recursive functions over JSON values that take no depth, with the reason why the
// recursion is bounded.
var boundedWalks = map[string]string{}

// TestOutsideTextIsReadWithinLimits: a text from outside is checked by providers/fields before anything walks it.
func TestOutsideTextIsReadWithinLimits(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.room() == "test" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok || !isName(call.X, "gjson") {
				return true
			}
			if unlimited[call.Sel.Name] {
				t.Errorf("%s: gjson.%s recurses without a limit; use fields.ValidLenient or json.Valid",
					fileSet.Position(n.Pos()), call.Sel.Name)
			}
			return true
		})
	}
}

// foldingReaders are the files that decode with encoding/json, which takes "Model" for "model", and why no
// text from outside is read by them in another way than a provider would read it.
var foldingReaders = map[string]string{
	"http/admin/admin.go":          "the client reads replies of its own gateway",
	"http/text/again.go":           "a record of the gateway's own",
	"http/web/browser/seal.go":     "sealed by the gateway",
	"providers/dialogue/seal.go":   "sealed by the gateway",
	"providers/picture/request.go": "a string, which has no names",
	"actors/videojob/step.go":      "a record of the gateway's own",
}

// TestOutsideNamesAreReadAsWritten forbids decoders that disregard the case of names for requests and replies.
func TestOutsideNamesAreReadAsWritten(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if room := s.room(); s.test() || room != "http" && room != "providers" && room != "actors" {
			continue
		}
		if !slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"encoding/json"` }) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok || !isName(call.X, "json") || call.Sel.Name != "Unmarshal" && call.Sel.Name != "NewDecoder" {
				return true
			}
			if used[s.path] = true; foldingReaders[s.path] == "" {
				t.Errorf("%s: json.%s disregards the case of names; use the json of go-json-experiment",
					fileSet.Position(n.Pos()), call.Sel.Name)
			}
			return true
		})
	}
	for path := range foldingReaders {
		if !used[path] {
			t.Errorf("%s decodes nothing any more: take it from the list", path)
		}
	}
}

// TestNoPathComesFromOutside: gjson's paths are a language with modifiers and queries, some of which recurse.
// fields.MemberOf looks a name from outside up.
func TestNoPathComesFromOutside(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.room() == "test" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 || !isGet(call.Fun) {
				return true
			}
			ast.Inspect(call.Args[0], func(inner ast.Node) bool {
				if e, ok := inner.(ast.Expr); ok && isGet(e) {
					t.Errorf("%s: a value that was read is a path here; use fields.MemberOf", fileSet.Position(n.Pos()))
				}
				return true
			})
			return true
		})
	}
}

func isGet(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Get"
}

// TestWalksOverJSONHaveADepth finds functions that take a JSON value, reach themselves within their package and
// have no parameter called depth.
func TestWalksOverJSONHaveADepth(t *testing.T) {
	packages := map[string]map[string]*walk{}
	for _, s := range sources(t) {
		if s.test() || s.room() == "test" {
			continue
		}
		if packages[s.dir()] == nil {
			packages[s.dir()] = map[string]*walk{}
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && takesJSON(f.Type) {
				packages[s.dir()][nameOf(f)] = walkOf(f)
			}
		}
	}
	used := map[string]bool{}
	for dir, walks := range packages {
		for name, w := range walks {
			if w.depth || !w.reaches(name, walks, map[string]bool{}) {
				continue
			}
			used[dir+"."+name] = true
			if boundedWalks[dir+"."+name] == "" {
				t.Errorf("%s: %s.%s walks JSON recursively without a parameter depth; add one, or list it in boundedWalks with a reason",
					fileSet.Position(w.decl.Pos()), dir, name)
			}
		}
	}
	for name := range boundedWalks {
		if !used[name] {
			t.Errorf("boundedWalks lists %s, which is no recursive function over JSON without a depth", name)
		}
	}
}

// A walk is a function that takes a JSON value.
type walk struct {
	decl  *ast.FuncDecl
	depth bool            // it has a parameter called depth
	calls map[string]bool // functions and methods that it names, called or not
}

func walkOf(f *ast.FuncDecl) *walk {
	w := &walk{decl: f, calls: map[string]bool{}}
	for _, p := range f.Type.Params.List {
		for _, name := range p.Names {
			w.depth = w.depth || name.Name == "depth"
		}
	}
	var see func(ast.Node) bool
	see = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if !isName(n.X, "gjson") {
				w.calls["."+n.Sel.Name] = true
			}
			ast.Inspect(n.X, see)
			return false
		case *ast.Ident:
			w.calls[n.Name] = true
		}
		return true
	}
	ast.Inspect(f.Body, see)
	return w
}

// reaches reports whether w calls the function target through functions that take JSON and no depth.
func (w *walk) reaches(target string, walks map[string]*walk, seen map[string]bool) bool {
	for name, next := range walks {
		if !w.calls[bare(name)] || next.depth || seen[name] {
			continue
		}
		seen[name] = true
		if name == target || next.reaches(target, walks, seen) {
			return true
		}
	}
	return false
}

// nameOf tells methods of different types apart: "decoder.value".
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return "." + f.Name.Name
}

// bare returns the name of a function in a call: "value", or ".value" for a method.
func bare(name string) string {
	if i := strings.IndexByte(name, '.'); i >= 0 {
		return name[i:]
	}
	return name
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// takesJSON reports whether a parameter or result is, or has to do with, a JSON value.
func takesJSON(f *ast.FuncType) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			found = found || isName(s.X, "gjson") && s.Sel.Name == "Result" || isName(s.X, "json") &&
				s.Sel.Name == "RawMessage" ||
				isName(s.X, "jsontext")
		}
		return true
	})
	return found
}
