package portal

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"stagedoor/http/settings"
	"stagedoor/http/web/pages"
	"stagedoor/state"
)

const (
	actionTest = "provider.test"
	// testsWithin bounds the time for which the first page after a start looks for earlier tests.
	testsWithin = time.Second
)

// providerTests has the last test of each provider. The audit log keeps them over restarts, and it is read once,
// because a search through all of it is too slow for a page that is refreshed. A test at another gateway is seen after
// the next start. Any goroutine may use it.
type providerTests struct {
	mu   sync.Mutex
	read bool
	last map[string]pages.ProviderTest
}

// of adds the last tests to the rows of all providers, and forgets those of providers that are gone.
func (t *providerTests) of(ctx context.Context, s *state.State, now time.Time, rows []pages.ProviderRow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.read {
		t.last, t.read = earlierTests(ctx, s, rows), true
	}
	known := make(map[string]pages.ProviderTest, len(rows))
	for i := range rows {
		if test, ok := t.last[rows[i].Name]; ok {
			known[rows[i].Name] = test
			test.Today = test.At.UTC().Truncate(day).Equal(now.UTC().Truncate(day))
			rows[i].LastTest = &test
		}
	}
	t.last = known
}

// earlierTests returns the last tests of the providers in the audit log. What cannot be read in testsWithin is missing.
func earlierTests(ctx context.Context, s *state.State, rows []pages.ProviderRow) map[string]pages.ProviderTest {
	ctx, cancel := context.WithTimeout(ctx, testsWithin)
	defer cancel()
	found, missing := map[string]pages.ProviderTest{}, map[string]bool{}
	for i := range rows {
		missing[rows[i].Name] = true
	}
	for r, err := range s.AuditLog(ctx, state.AuditQuery{Action: actionTest}) {
		if err != nil || len(missing) == 0 {
			break
		}
		if !missing[r.Target.Name] {
			continue
		}
		test := pages.ProviderTest{At: r.At, By: cmp.Or(r.Actor.Name, string(r.Actor.Kind))}
		for _, c := range r.Changes {
			if c.Field == "outcome" && json.Unmarshal(c.After, &test.Outcome) == nil {
				found[r.Target.Name] = test
				delete(missing, r.Target.Name)
			}
		}
	}
	return found
}

// set stores a test that was made now.
func (t *providerTests) set(name string, test pages.ProviderTest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read { // otherwise the audit log has it
		t.last[name] = test
	}
}

// outcome returns the worst result of the checks of a provider, whose names begin with that of the provider. It
// returns "" if there is none.
func outcome(name string, checks []settings.Check) (worst string) {
	order := []string{"", "skipped", "ok", "warning", "failed"}
	for _, c := range checks {
		rest, ok := strings.CutPrefix(c.Name, "provider "+name)
		if ok && (rest == "" || rest[0] == ',') && slices.Index(order, c.Status) > slices.Index(order, worst) {
			worst = c.Status
		}
	}
	return worst
}

// keepTests records the outcome of a test of providers, by the user who sent the form.
func (rc *requestContext) keepTests(names []string, checks []settings.Check) {
	// The tests have been made and may have cost time at the providers, so they are recorded even if the browser has
	// left.
	ctx := context.WithoutCancel(rc.r.Context())
	for _, name := range names {
		result := outcome(name, checks)
		if result == "" {
			continue
		}
		err := rc.options.State.RecordAudit(ctx, state.AuditEvent{Action: actionTest,
			Target: state.Target{Kind: "provider", Name: name}, After: state.Fields{"outcome": result}})
		if err != nil {
			rc.options.Logger.Warn("the audit log lacks a test of a provider", "provider", name, "cause", err)
		}
		rc.tests.set(name, pages.ProviderTest{At: rc.options.Now(), By: rc.user.Username, Outcome: result})
	}
}
