package test

import (
	"go/ast"
	"go/types"
	"slices"
	"testing"
)

// A module registers its tables with what must follow their changes, so that the core works for a table that it does
// not know. The core has one table of its own, the facts.
func TestTheCoreOfTheStateNamesNoTable(t *testing.T) {
	tables := map[string][]string{}
	for _, s := range sources(t) {
		if (s.dir() == "state" || slices.Contains(stateModules, s.dir())) && !s.test() {
			tables[s.dir()] = append(tables[s.dir()], tableVariables(s.file)...)
		}
	}
	if core := tables["state"]; !slices.Equal(core, []string{"facts"}) {
		t.Errorf("package state has the tables %q, want facts alone", core)
	}
	for _, module := range stateModules {
		if len(tables[module]) == 0 {
			t.Errorf("%s has no table", module)
		}
	}
}

// tableVariables lists the variables of a file that are tables.
func tableVariables(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				continue
			}
			lit, ok := v.Values[0].(*ast.CompositeLit)
			if !ok {
				continue
			}
			if generic, ok := lit.Type.(*ast.IndexExpr); ok {
				if typ := types.ExprString(generic.X); typ == "Table" || typ == "state.Table" {
					names = append(names, v.Names[0].Name)
				}
			}
		}
	}
	return names
}
