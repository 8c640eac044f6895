// Command lint looks at the packages that are its arguments with the checks of staticcheck and of go vet. One process
// does both, because reading the packages and what they import takes most of the time of each.
//
//	lint -short ./...
//
// With -short, imports of other modules are only looked at for what is deprecated in them, and not for which of their
// functions have no effect, return no nil or print.
package main

import (
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/appends"
	"golang.org/x/tools/go/analysis/passes/asmdecl"
	"golang.org/x/tools/go/analysis/passes/assign"
	"golang.org/x/tools/go/analysis/passes/atomic"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/buildtag"
	"golang.org/x/tools/go/analysis/passes/cgocall"
	"golang.org/x/tools/go/analysis/passes/composite"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/defers"
	"golang.org/x/tools/go/analysis/passes/directive"
	"golang.org/x/tools/go/analysis/passes/errorsas"
	"golang.org/x/tools/go/analysis/passes/framepointer"
	"golang.org/x/tools/go/analysis/passes/hostport"
	"golang.org/x/tools/go/analysis/passes/httpresponse"
	"golang.org/x/tools/go/analysis/passes/ifaceassert"
	"golang.org/x/tools/go/analysis/passes/loopclosure"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/sigchanyzer"
	"golang.org/x/tools/go/analysis/passes/slog"
	"golang.org/x/tools/go/analysis/passes/stdmethods"
	"golang.org/x/tools/go/analysis/passes/stdversion"
	"golang.org/x/tools/go/analysis/passes/stringintconv"
	"golang.org/x/tools/go/analysis/passes/structtag"
	"golang.org/x/tools/go/analysis/passes/testinggoroutine"
	"golang.org/x/tools/go/analysis/passes/tests"
	"golang.org/x/tools/go/analysis/passes/timeformat"
	"golang.org/x/tools/go/analysis/passes/unmarshal"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/analysis/passes/waitgroup"
	"honnef.co/go/tools/lintcmd"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// vet are the checks of go vet.
var vet = []*analysis.Analyzer{
	appends.Analyzer, asmdecl.Analyzer, assign.Analyzer, atomic.Analyzer, bools.Analyzer, buildtag.Analyzer,
	cgocall.Analyzer, composite.Analyzer, copylock.Analyzer, defers.Analyzer, directive.Analyzer, errorsas.Analyzer,
	framepointer.Analyzer, hostport.Analyzer, httpresponse.Analyzer, ifaceassert.Analyzer, loopclosure.Analyzer,
	lostcancel.Analyzer, nilfunc.Analyzer, printf.Analyzer, shift.Analyzer, sigchanyzer.Analyzer, slog.Analyzer,
	stdmethods.Analyzer, stdversion.Analyzer, stringintconv.Analyzer, structtag.Analyzer, testinggoroutine.Analyzer,
	tests.Analyzer, timeformat.Analyzer, unmarshal.Analyzer, unreachable.Analyzer, unsafeptr.Analyzer,
	unusedresult.Analyzer, waitgroup.Analyzer,
}

func main() {
	cmd := lintcmd.NewCommand("lint")
	short := cmd.FlagSet().Bool("short", false, "do not analyse imports of other modules")
	cmd.ParseFlags(os.Args[1:])
	all := append(append(append(simple.Analyzers, staticcheck.Analyzers...), stylecheck.Analyzers...), unused.Analyzer)
	cmd.AddAnalyzers(all...)
	cmd.AddBareAnalyzers(vet...)
	if *short {
		// The results that are kept for the next run have the names of the checks.
		cmd.AddBareAnalyzers(&analysis.Analyzer{Name: "short", Doc: "marks results of the short form",
			Run: func(*analysis.Pass) (any, error) { return nil, nil }})
		seen := map[*analysis.Analyzer]bool{}
		for _, a := range all {
			ownOnly(a.Analyzer, seen)
		}
		for _, a := range vet {
			ownOnly(a, seen)
		}
	}
	cmd.Run()
}

// ownOnly has an analyzer, and those that it requires, look at no package of another module. What is deprecated is read
// from comments and takes little time.
func ownOnly(a *analysis.Analyzer, seen map[*analysis.Analyzer]bool) {
	if seen[a] || a.Name == "fact_deprecated" {
		return
	}
	seen[a] = true
	run := a.Run
	a.Run = func(p *analysis.Pass) (any, error) {
		if !strings.HasPrefix(p.Pkg.Path(), "stagedoor") {
			return nil, nil
		}
		return run(p)
	}
	for _, required := range a.Requires {
		ownOnly(required, seen)
	}
}
