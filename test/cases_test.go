package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"stagedoor/test/cases"
	"stagedoor/test/harness"
)

// CasesEnv names another folder of cases to run.
const CasesEnv = "STAGEDOOR_CASES"

func TestMain(m *testing.M) { harness.Main(m) }

// casesDirs are the folders of cases: the shared ones, and the project's own.
func casesDirs() []string {
	if dir := os.Getenv(CasesEnv); dir != "" {
		return []string{dir}
	}
	return []string{filepath.Join("testdata", "cases", "open"), filepath.Join("testdata", "cases-own")}
}

// TestCases plays every case against the real program, one process per upstream
// shape, and prints the score.
func TestCases(t *testing.T) {
	var all []cases.Case
	for _, dir := range casesDirs() {
		found, err := cases.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Fatalf("no cases in %s", dir)
		}
		all = append(all, found...)
	}
	runner := cases.Runner{Key: harness.TestKey, Gateways: map[cases.Shape]string{},
		Upstreams: map[cases.Shape]*cases.Upstream{}}
	for _, shape := range cases.Shapes {
		used := slices.ContainsFunc(all, func(c cases.Case) bool { return c.Upstream == shape })
		if !used {
			continue
		}
		upstream, err := cases.NewUpstream(shape)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(upstream.Close)
		gateway := harness.Start(t, harness.CatchAll(harness.Provider{
			Shape: string(shape), BaseURL: upstream.BaseURL(), APIKeys: []string{"sk-upstream"},
			PassUnknownResponses: true, // the cases continue responses that their provider has made before
		}))
		runner.Upstreams[shape], runner.Gateways[shape] = upstream, gateway.URL
	}
	scores := score{}
	for _, c := range all {
		passed := t.Run(c.ID, func(t *testing.T) {
			for i, wrong := range runner.Play(c) {
				if i == 0 {
					t.Logf("%s (%s, %s): %s", c.Title, c.Level, c.Category, c.Why)
				}
				t.Error(wrong)
			}
		})
		scores.count("level "+c.Level, passed)
		scores.count("category "+c.Category, passed)
	}
	t.Log("\n" + scores.String())
}

// A score is passed and played per row.
type score map[string]*[2]int

func (s score) count(row string, passed bool) {
	if s[row] == nil {
		s[row] = &[2]int{}
	}
	if passed {
		s[row][0]++
	}
	s[row][1]++
}

func (s score) String() string {
	var b strings.Builder
	for _, row := range slices.Backward(slices.Sorted(maps.Keys(s))) { // levels first
		fmt.Fprintf(&b, "%-32s %3d/%d\n", row, s[row][0], s[row][1])
	}
	return b.String()
}

func TestCaseFilesKeepTheirSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	schema, err := compiler.Compile(filepath.Join("testdata", "cases", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, dir := range casesDirs() {
		found, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(f)
		_ = f.Close()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := schema.Validate(doc); err != nil && filepath.Base(file) != "schema.json" {
			t.Errorf("%s: %v", file, err)
		}
	}
}
