package test

import (
	"go/ast"
	"go/types"
	"slices"
	"testing"
)

// stateCore are the files of package state that work for every table alike.
var stateCore = []string{
	"state/indexkeys.go", "state/load.go", "state/module.go", "state/sweep.go", "state/table.go", "state/tx.go",
	"state/verify.go", "state/view.go", "state/writer.go",
}

// A module registers its tables with what must follow their changes, so that the core works for a table that it does not
// know.
func TestTheCoreOfTheStateNamesNoTable(t *testing.T) {
	tables := map[string]bool{}
	files := sources(t)
	for _, s := range files {
		if (s.dir() == "state" || slices.Contains(stateModules, s.dir())) && !s.test() {
			for _, name := range tableVariables(s.file) {
				tables[name] = true
			}
		}
	}
	if len(tables) < 20 {
		t.Fatalf("only %d tables were found in the packages of the state", len(tables))
	}
	checked := 0
	for _, s := range files {
		if !slices.Contains(stateCore, s.path) {
			continue
		}
		checked++
		fields := map[*ast.Ident]bool{} // a field may have the name of a table
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				fields[n.Sel] = true
			case *ast.Ident:
				if tables[n.Name] && !fields[n] {
					t.Errorf("%s names the table %s", fileSet.Position(n.Pos()), n.Name)
				}
			}
			return true
		})
	}
	if checked != len(stateCore) {
		t.Errorf("%d of the %d files of the core were found", checked, len(stateCore))
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
