package test

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestErrorsOfClientsComeFromConstructors keeps the literals of dialogue.Error inside its package, so that
// each error code has one status, one type and one wording.
func TestErrorsOfClientsComeFromConstructors(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.room() == "test" || s.dir() == "providers/dialogue" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.CompositeLit); ok && isSelector(literal.Type, "dialogue", "Error") {
				t.Errorf("%s: a literal of dialogue.Error: use a constructor of package dialogue",
					fileSet.Position(n.Pos()))
			}
			return true
		})
	}
}

// TestNoStatusIsWrittenInActorsAndState lets actors compare the status of an upstream's reply and keeps them
// from choosing one. The constructors of package dialogue and the packages of http choose statuses.
func TestNoStatusIsWrittenInActorsAndState(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() || s.room() != "actors" && s.room() != "state" {
			continue
		}
		report := func(at ast.Node) {
			t.Errorf("%s: chooses an HTTP status: use a constructor of package dialogue", fileSet.Position(at.Pos()))
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				for _, general := range []string{"Refusal", "Reported"} {
					if isSelector(n.Fun, "dialogue", general) {
						report(n)
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Status" && isStatus(n.Value) {
					report(n)
				}
			case *ast.AssignStmt:
				for i := range min(len(n.Lhs), len(n.Rhs)) {
					if field, ok := n.Lhs[i].(*ast.SelectorExpr); ok && field.Sel.Name == "Status" &&
						isStatus(n.Rhs[i]) {
						report(n)
					}
				}
			}
			return true
		})
	}
}

// isSelector reports whether e is written as pkg.name.
func isSelector(e ast.Expr, pkg, name string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	id, ok := selector.X.(*ast.Ident)
	return ok && id.Name == pkg
}

// isStatus reports whether e is a number or a constant of net/http.
func isStatus(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.INT && e.Value != "0"
	case *ast.SelectorExpr:
		id, ok := e.X.(*ast.Ident)
		return ok && id.Name == "http"
	}
	return false
}
