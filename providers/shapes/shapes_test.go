package shapes

import (
	"strings"
	"testing"

	"stagedoor/providers/fields"
)

// TestCheckRefusesAnIncompleteShape checks that a mistake in a list of shapes is found before the
// gateway starts. A route without a scope would be open to every key.
func TestCheckRefusesAnIncompleteShape(t *testing.T) {
	type parts struct {
		Inbound
		Outbound
		Passthrough
	}
	complete := func() *Shape {
		p := parts{}
		return &Shape{
			Descriptor: Descriptor{
				Name: "a", Scope: "a", Routes: []Route{{Pattern: "POST /a", Task: Generate}},
				Members: fields.NewNames("model"), Telemetry: Telemetry{Operation: "o", Vendor: "v"},
			},
			Inbound: p, Outbound: p, Passthrough: p,
		}
	}
	if err := Check([]*Shape{complete()}); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(s *Shape){
		"a shape has no name":               func(s *Shape) { s.Name = "" },
		"lacks Inbound":                     func(s *Shape) { s.Outbound = nil },
		"has no routes":                     func(s *Shape) { s.Routes = nil },
		"its routes have no scope":          func(s *Shape) { s.Scope = "" },
		"does not list the members":         func(s *Shape) { s.Members = nil },
		"no names for telemetry":            func(s *Shape) { s.Telemetry.Vendor = "" },
		"nothing handles the route POST /b": func(s *Shape) { s.Routes = []Route{{Pattern: "POST /b"}} },
		"nothing handles the route POST /c": func(s *Shape) { s.Routes = []Route{{Pattern: "POST /c", Task: Count}} },
	} {
		s := complete()
		spoil(s)
		if err := Check([]*Shape{s}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := Check([]*Shape{complete(), complete()}); err == nil {
		t.Error("one name for two shapes is accepted")
	}
}
