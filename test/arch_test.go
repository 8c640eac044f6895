package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"stagedoor/test/harness"
)

const module = "stagedoor"

// arrows lists the top folders that each top folder may import besides itself. A folder that is not
// listed here must not exist.
var arrows = map[string][]string{
	"cmd":       {"http", "actors", "state", "providers"},
	"http":      {"actors", "state", "providers", "docs"},
	"actors":    {"state", "providers"},
	"state":     {},
	"docs":      {}, // pages that the program reads itself
	"providers": {},
	"test":      {"cmd", "http", "actors", "state", "providers", "docs"},
}

// shapesMeet are the packages under providers/shapes that may know more than one
// shape: nothing else does.
var shapesMeet = []string{"providers/shapes/registry"}

// testSupport are the packages besides the room test that are made for tests only:
// they may import testing, and nothing that is shipped may import them.
var testSupport = []string{"actors/kit/kittest", "http/web/idp/idptest", "http/web/mailer/mailertest",
	"providers/dialogue/dialoguetest", "state/journal/conformance", "state/requestlog/logtest", "state/statetest",
	"state/statetest/fixture", "state/statetest/ondisk", "state/statetest/pgserver"}

// bareGo lists the files that may start a goroutine with a go statement, with the
// reason. Everywhere else goroutines are started through conc or actors/kit, which
// carry a panic to the owner instead of ending the process.
var bareGo = map[string]string{
	"actors/kit/dispatcher.go":           "kit itself: the workers of the dispatcher, counted and joined at a stop",
	"actors/kit/system.go":               "kit itself: waits for the others, so that a stop can give up on them",
	"state/statetest/pgserver/server.go": "for tests: the thread that started the server must live as long as it",
	"state/state.go":                     "the writer: a panic there must end the process, for memory and disk may differ (faults.md P15)",
}

// A source is a parsed Go file of the module.
type source struct {
	path string // slash-separated, from the module's root
	file *ast.File
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) test() bool   { return strings.HasSuffix(s.path, "_test.go") }
func (s source) room() string { room, _, _ := strings.Cut(s.path, "/"); return room }

// imports lists the imported packages of the module, from its root.
func (s source) imports(t *testing.T) []string {
	var out []string
	for _, spec := range s.file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(name, module+"/"); ok {
			out = append(out, rest)
		}
	}
	return out
}

var fileSet = token.NewFileSet()

// sources returns every Go file of the module; nested modules are not part of it. Tests share what is parsed once.
func sources(t *testing.T) []source {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatal("no Go files found")
	}
	return out
}

var parsed = sync.OnceValues(parse)

func parse() (out []source, err error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipDir(root, name)
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(fileSet, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		out = append(out, source{path: filepath.ToSlash(rel), file: file})
		return nil
	})
	return out, err
}

func skipDir(root, dir string) error {
	if dir == root {
		return nil
	}
	switch base := filepath.Base(dir); {
	case strings.HasPrefix(base, "."), base == "testdata", base == "node_modules", base == "data", base == "bin":
		return fs.SkipDir
	}
	if found, err := filepath.Glob(filepath.Join(dir, "go.mod")); err != nil || len(found) > 0 {
		return fs.SkipDir
	}
	return nil
}

func TestArrowsRunOneWay(t *testing.T) {
	for _, s := range sources(t) {
		allowed, ok := arrows[s.room()]
		if !ok {
			t.Errorf("%s: %q is not a known top folder", s.path, s.room())
			continue
		}
		for _, imported := range s.imports(t) {
			room, _, _ := strings.Cut(imported, "/")
			helper := s.test() && room == "test" // a package's own tests may use the harness
			if room != s.room() && !slices.Contains(allowed, room) && !helper {
				t.Errorf("%s imports %s: %s must not know %s", s.path, imported, s.room(), room)
			}
		}
	}
}

func TestNoShapeKnowsAnother(t *testing.T) {
	const shapes = "providers/shapes/"
	for _, s := range sources(t) {
		own, ok := shapeOf(s.dir(), shapes)
		if !ok || s.test() || slices.Contains(shapesMeet, s.dir()) {
			continue
		}
		for _, imported := range s.imports(t) {
			if other, ok := shapeOf(imported, shapes); ok && other != own {
				t.Errorf("%s imports %s: shapes meet in providers/dialogue only", s.path, imported)
			}
		}
	}
}

// engineUses are the packages of actors that actors/engine may import. The packages that
// implement an exchange are not among them, so a new kind of request needs only its own package.
var engineUses = []string{"actors/flow", "actors/kit", "actors/telemetry", "actors/throttle"}

func TestTheEngineNamesNoExchange(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir() != "actors/engine" || s.test() {
			continue
		}
		for _, imported := range s.imports(t) {
			if strings.HasPrefix(imported, "actors/") && !slices.Contains(engineUses, imported) {
				t.Errorf("%s imports %s: the engine must not know its exchanges", s.path, imported)
			}
		}
	}
}

func TestWhatIsShippedUsesNoTestSupport(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.room() == "test" || slices.Contains(testSupport, s.dir()) {
			continue
		}
		for _, imported := range s.imports(t) {
			if slices.Contains(testSupport, imported) {
				t.Errorf("%s imports %s, which is for tests", s.path, imported)
			}
		}
		for _, spec := range s.file.Imports {
			if spec.Path.Value == `"testing"` {
				t.Errorf("%s imports testing: a package for tests is listed in testSupport", s.path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if used, ok := n.(*ast.SelectorExpr); ok && strings.HasSuffix(used.Sel.Name, "ForTests") {
				t.Errorf("%s uses %s", s.path, used.Sel.Name)
			}
			return true
		})
	}
}

// stateModules are the packages that own the tables of the state. state/schema lists them, and nothing else in state
// knows more than one of them.
var stateModules = []string{"state/identity", "state/money", "state/work"}

func TestModulesOfTheStateDoNotKnowEachOther(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.dir() != "state" && !slices.Contains(stateModules, s.dir()) {
			continue
		}
		for _, imported := range s.imports(t) {
			if imported != s.dir() && slices.Contains(stateModules, imported) {
				t.Errorf("%s imports %s: what two of them need belongs into state or state/budget", s.path, imported)
			}
		}
	}
}

// shapeOf is the shape whose folder a package lies in.
func shapeOf(dir, shapes string) (string, bool) {
	rest, ok := strings.CutPrefix(dir, shapes)
	shape, _, _ := strings.Cut(rest, "/")
	return shape, ok
}

// modelName is the name of a vendor's model, or of a family of them, or that of the documents for one.
var modelName = regexp.MustCompile(`(?i)\b(gpt|chatgpt|claude|opus|sonnet|haiku|gemini|gemma|veo|imagen|grok|` +
	`deepseek|mistral|codestral|llama|qwen|kimi|glm|nova|dall-e|sora|whisper|gen-image|legacy-image)-?[0-9*-]|` +
	`\bo[1-9]\b|"video-[0-9]`)

// modelsNamed lists the files that may name models, with the reason. Files of cmd may, because they show examples.
var modelsNamed = map[string]string{
	"providers/modelname/modelname.go":  "the documents give these families other names",
	"providers/shapes/images/family.go": "the documents' rules for requests",
	"providers/shapes/images/check.go":  "the documents' models of requests that name none",
	"providers/shapes/images/shape.go":  "the sizes in the documents' rules",
	"http/media/videos/ask.go":          "the documents' model of requests that name none",
}

// What is known of a model is data of the catalogue, where it can be replaced without a new program.
func TestFactsAboutModelsAreDataOfTheCatalogue(t *testing.T) {
	found := map[string]bool{}
	for _, s := range sources(t) {
		simulated := strings.HasPrefix(s.dir(), "providers/sandbox")
		if s.test() || s.room() == "test" || s.room() == "cmd" || s.dir() == "providers/catalog" || simulated {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING || !modelName.MatchString(text.Value) {
				return true
			}
			if found[s.path] = true; modelsNamed[s.path] == "" {
				t.Errorf("%s: %.80s names a model; what is known of it belongs to providers/catalog",
					fileSet.Position(n.Pos()), text.Value)
			}
			return true
		})
	}
	for path := range modelsNamed {
		if !found[path] {
			t.Errorf("%s names no model and needs no exception", path)
		}
	}
}

func TestNoPackageIsCalledHTTP(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir() == "http" {
			t.Errorf("%s lies directly in http/: its package would take net/http's name", s.path)
		}
	}
}

func TestPackagesAreNamedAfterTheirFolder(t *testing.T) {
	for _, s := range sources(t) {
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		if name != "main" && name != path.Base(s.dir()) {
			t.Errorf("%s is package %s", s.path, name)
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	comments := map[string]string{}
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		comments[s.dir()] += s.file.Doc.Text()
	}
	for dir, comment := range comments {
		if len(comment) < 40 {
			t.Errorf("package %s has no comment that says what it is for: %q", dir, comment)
		}
	}
}

func TestGoroutinesHaveAnOwner(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test() || s.room() == "test" {
			continue // a panic there ends a test, which is what it should do
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); !ok {
				return true
			}
			used[s.path] = true
			if bareGo[s.path] == "" {
				t.Errorf("%s: go statement; start it through conc or actors/kit, or list the file in bareGo with a reason", fileSet.Position(n.Pos()))
			}
			return true
		})
	}
	for file := range bareGo {
		if !used[file] {
			t.Errorf("bareGo lists %s, which has no go statement", file)
		}
	}
}
