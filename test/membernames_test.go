package test

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stagedoor/http/media/videos"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes/embeddings"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/providers/shapes/images"
	"stagedoor/providers/shapes/registry"
	"stagedoor/test/cases"
	"stagedoor/test/harness"
)

// A requestReader is a package that reads requests.
type requestReader struct {
	names *fields.Names // nil: those of every shape
	// replies are the files, by the beginning of their names, that read and write only replies.
	replies []string
	// words are the variables of the package with words that are not names of members.
	words []string
	// other are names that only replies and the gateway's own records have.
	other []string
}

func requestReaders() map[string]requestReader {
	of := func(s dialogue.Shape) *fields.Names { return registry.ByName()[s].Members }
	return map[string]requestReader{
		"providers/chunks":   {replies: []string{"emit", "failure", "parser", "tap", "usage", "reason"}},
		"providers/dialogue": {replies: []string{"error", "replybuilder", "event", "seal"}},
		"providers/shapes/chat": {names: of(dialoguetest.Chat), replies: []string{"emit", "parser", "reply", "tap", "picture", "shape"},
			words: []string{"partKinds"}},
		"providers/shapes/completions": {names: of(dialoguetest.Completions), replies: []string{"emit", "parser", "logprobs", "shape"}},
		"providers/shapes/responses": {names: of(dialoguetest.Responses), replies: []string{"emit", "parser", "tap", "failure", "complete", "frame"},
			words: []string{"itemRules", "choiceWords", "idPrefixes"},
			other: []string{"developer"}},
		"providers/shapes/messages": {names: of(dialoguetest.Messages),
			replies: []string{"parser", "tap", "stream", "whole", "usage", "errors", "reason"},
			other:   []string{"input_tokens"}},
		"providers/shapes/gemini": {names: of(dialoguetest.Gemini),
			replies: []string{"emit", "parser", "tap", "usage", "errors", "citations", "models", "logprobs", "picture",
				"reasons", "arguments"},
			words: []string{"extensions"},
			other: []string{"error", "result", "totalTokens"}},
		// of what a function answered, whose names are the client's own
		"providers/shapes/embeddings": {names: embeddings.Descriptor.Members, replies: []string{"encode", "shape"},
			words: []string{"purposes"}},
		"providers/shapes/images":   {names: images.MemberNames, replies: []string{"emit", "parse", "encode", "shape"}},
		"providers/shapes/imagegen": {names: imagegen.MemberNames, replies: []string{"reply", "convert", "encode", "shape", "words"}},
		"http/media/videos":         {names: videos.MemberNames, replies: []string{"object", "page"}},
	}
}

// TestEveryNameThatIsReadIsKnown finds the member names in the code that reads requests and compares
// them with the lists of names that must be written as they are. A name that is missing from a list
// could be sent in other letters, and a provider that disregards case would read it.
func TestEveryNameThatIsReadIsKnown(t *testing.T) {
	readers := requestReaders()
	everyName := map[string]bool{}
	for _, r := range readers {
		if r.names != nil {
			for _, name := range r.names.All() {
				everyName[name] = true
			}
		}
	}
	found := map[string]int{}
	for _, s := range sources(t) {
		r, ok := readers[s.dir()]
		base := path.Base(s.path)
		if !ok || s.test() || slices.ContainsFunc(r.replies, func(p string) bool { return strings.HasPrefix(base, p) }) {
			continue
		}
		known := everyName // an encoder reads what another shape wrote
		if r.names != nil && !strings.HasPrefix(base, "encode") {
			known = map[string]bool{}
			for _, name := range r.names.All() {
				known[name] = true
			}
		}
		for _, name := range namesRead(s.file, r.words) {
			found[s.dir()]++
			if !known[name] && !slices.Contains(r.other, name) {
				t.Errorf("%s reads %q, which is not among the names of its requests", s.path, name)
			}
		}
	}
	for dir := range readers {
		if found[dir] == 0 {
			t.Errorf("no names were found in %s", dir)
		}
	}
}

var nameLike = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*$`)

// nameTakers are functions and methods whose arguments are names or paths of members.
var nameTakers = []string{
	"Get", "GetBytes", "GetMany", "GetManyBytes", "Lacks", "Missing", "MemberOf", "RecordIgnoredExcept", "LoseSearch",
	"field", "fieldOf",
	"flag", "given", "integer", "member", "needs", "optional", "text",
}

// namesRead lists the member names that a file reads: the cases of a switch over a name, the words
// that a name is compared with, the arguments of nameTakers, and the tables of the package.
func namesRead(f *ast.File, words []string) []string {
	found := map[string]bool{}
	add := func(n ast.Node) {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil || strings.HasPrefix(text, ".") { // the ending of a file's name
			return
		}
		for part := range strings.SplitSeq(text, ".") {
			if nameLike.MatchString(part) {
				found[part] = true
			}
		}
	}
	addAll := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool { add(n); return true })
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			if !slices.Contains(words, v.Names[0].Name) {
				addTables(v.Values, add, addAll)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					if n.Tag != nil && isMember(n.Tag) {
						add(e)
					}
				}
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && isMember(n.X) {
				add(n.Y)
			}
		case *ast.CallExpr:
			if slices.Contains(nameTakers, called(n)) {
				for _, a := range n.Args {
					add(a)
				}
			}
		case *ast.RangeStmt:
			if n.Value != nil && isMember(n.Value) {
				addAll(n.X)
			}
		case *ast.KeyValueExpr: // rule{name: "prompt"}
			if isMember(n.Key) {
				add(n.Value)
			}
		}
		return true
	})
	return slices.Sorted(maps.Keys(found))
}

// addTables adds the names in maps by name and in lists of names.
func addTables(values []ast.Expr, add, addAll func(ast.Node)) {
	for _, value := range values {
		table, ok := value.(*ast.CompositeLit)
		if !ok {
			continue
		}
		switch kind := table.Type.(type) {
		case *ast.ArrayType:
			if e, ok := kind.Elt.(*ast.Ident); ok && e.Name == "string" {
				addAll(table)
			}
		case *ast.MapType:
			_, lists := kind.Value.(*ast.ArrayType)
			for _, e := range table.Elts {
				pair := e.(*ast.KeyValueExpr)
				if lists { // by the type of the object
					addAll(pair.Value)
				} else {
					add(pair.Key)
				}
			}
		}
	}
}

func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// isMember reports whether an expression is the name of a member, as in string(name) and key.Str.
func isMember(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "name" || e.Name == "key"
	case *ast.SelectorExpr:
		return isMember(e.X)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && isMember(f.X) {
			return true
		}
		return len(e.Args) == 1 && isMember(e.Args[0])
	}
	return false
}

// TestRequestsOfTheCasesAreWrittenAsTheyAreRead sends every request of the cases past the names of
// its shape. None of them may be refused for a name of the client's own.
func TestRequestsOfTheCasesAreWrittenAsTheyAreRead(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := cases.Load(filepath.Join(root, "test/testdata"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, c := range all {
		shape := registry.ByName()[dialogue.Shape(c.Inbound)]
		if shape == nil {
			t.Fatalf("%s: unknown shape %q", c.ID, c.Inbound)
		}
		for _, x := range append([]cases.Exchange{c.Exchange}, c.Then...) {
			if !json.Valid(x.Request) {
				continue
			}
			checked++
			if fault := fields.ExplainNames(x.Request, shape.Members); fault.Flaw == fields.MisspelledName {
				t.Errorf("%s: %s must be written %q", c.ID, fault.Path, fault.Name)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d requests were checked", checked)
	}
}
