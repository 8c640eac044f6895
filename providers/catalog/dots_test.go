package catalog

import (
	"strings"
	"testing"
)

func TestNamesThatLeaveTheirPathAreFound(t *testing.T) {
	c, mistakes := New(
		[]Provider{{Name: "p", Shape: "gemini", BaseURL: "http://a"}},
		[]Model{
			{Pattern: "cheap-*", Targets: []Route{{Provider: "p"}}},
			{Pattern: "*", Targets: []Route{{Provider: "p"}}},
		},
	)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	for _, name := range []string{"cheap-/../dear", "cheap-/./x", "cheap-/..", "..", ".", "../x", "cheap-//x", "/x", "cheap-/", `cheap-\..\dear`,
		"cheap-/%2e%2E/dear", "cheap-%2f..%2Fdear", "cheap-/%252e%252e/dear", "cheap-/%25252e./dear",
		"cheap-/..;a=b/dear", "cheap-/..%3Bx/dear", "cheap-%5c..%5Cdear", strings.Repeat("m", 257)} {
		if _, ok := c.Resolve(name); ok {
			t.Errorf("%q is served", name)
		}
	}
	for _, name := range []string{"cheap-1.5", "cheap-a/b", "cheap-...", "cheap-..x/y", "org/model:tag", "cheap-100%",
		"cheap-x%20y", "a.b/c.d", "cheap-;x",
		strings.Repeat("m", 256), strings.Repeat("é", 256)} {
		if _, ok := c.Resolve(name); !ok {
			t.Errorf("%q is not served", name)
		}
	}
}
