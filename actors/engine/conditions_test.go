package engine

import (
	"testing"

	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

func TestEachFailureMeetsItsCondition(t *testing.T) {
	refused := func(why throttle.Reason) *upstream.Failure {
		return refusedByLimiter(t.Context(), &throttle.Refused{Reason: why})
	}
	class := func(c upstream.Class) *upstream.Failure {
		return &upstream.Failure{Class: c, Err: dialogue.Incomplete()}
	}
	met := catalog.OnUnsupported // of a target that is left out, never of a failure
	for name, test := range map[string]struct {
		f    *upstream.Failure
		want string
	}{
		"long prompt":    {&upstream.Failure{Class: upstream.CallerFault, LongPrompt: true}, "context_length_exceeded"},
		"moderation":     {upstream.FilteredReply(), "content_filter"},
		"429":            {class(upstream.RateLimited), "rate_limited"},
		"own limit":      {refused(throttle.Shed), "rate_limited"},
		"open breaker":   {refused(throttle.BreakerOpen), "unavailable"},
		"overload":       {class(upstream.Overloaded), "overloaded"},
		"500":            {class(upstream.Transient), "server_error"},
		"reset":          {class(upstream.MaybeSent), "server_error"},
		"timeout":        {class(upstream.TimedOut), "timeout"},
		"not reached":    {class(upstream.NotSent), "unavailable"},
		"key refused":    {class(upstream.Credential), "credential"},
		"other mistakes": {class(upstream.CallerFault), ""},
		"client left":    {class(upstream.Cancelled), ""},
	} {
		got := conditionsOf(test.f)
		if met |= got; got.String() != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	if all := catalog.ParseConditions(catalog.ConditionNames()); met != all {
		t.Errorf("no failure meets %s", all&^met)
	}
}

func TestAFailureLeadsToTheNextTargetThatIsForIt(t *testing.T) {
	const filter, busy = catalog.OnContentFilter, catalog.OnOverloaded
	plan := []catalog.Candidate{{}, {On: filter}, {}, {On: filter | busy}}
	for name, test := range map[string]struct {
		from    int
		met     catalog.Conditions
		callers bool
		want    int
	}{
		"a mistake of the client leads nowhere":  {0, 0, true, 0},
		"a filtered one to the entry for it":     {0, filter, true, 1},
		"and from there to the next one":         {1, filter, true, 3},
		"and no further":                         {3, filter, true, 0},
		"another failure to the unconditional":   {0, catalog.OnTimeout, false, 2},
		"overload to the first of either":        {0, busy, false, 2},
		"overload of that one to the entry":      {2, busy, false, 3},
		"a failure of another kind not to those": {2, catalog.OnTimeout, false, 0},
	} {
		if got := nextTarget(plan, test.from, test.met, test.callers); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}
