// Package alerts finds what operators want to know at once and adds it to the deliveries of actors/webhook: budgets
// that are half, almost and wholly spent or refuse requests, keys that a provider refuses, providers that are out of
// service, and a disk that fills.
//
// Which alerts were sent is part of the state (state/work), in the commit that adds the delivery. So an alert is sent
// once, although it is found by several processes or by one that starts again. This package only finds, and has nothing
// to lose: budgets are compared again when the process starts, and after changes of keys, users and groups.
//
// # Usage
//
// Start begins to watch and Close ends it. To add an alert, find its condition here and add the
// event to state/work, which remembers that it was sent.
//
// # Concurrency
//
// One goroutine does all comparisons. Money that is spent wakes it, and many charges in a row wake
// it once.
package alerts

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	"stagedoor/actors/engine"
	"stagedoor/actors/ledger"
	"stagedoor/actors/throttle"
	"stagedoor/providers/upstream"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
	"stagedoor/state/work"
)

const (
	// lookEvery is the time between two looks at providers and at the disk. A breaker stays open longer.
	lookEvery = 2 * time.Second
	// scanEvery is the time between two comparisons of all budgets, which are made only after changes of keys, users
	// or groups.
	scanEvery = 30 * time.Second
	// gather is the time for which changes of spending are collected before budgets are compared.
	gather = 100 * time.Millisecond
	// maxChanged bounds the scopes that have spent something since the last look. If there are more, all budgets are
	// compared.
	maxChanged = 4096
	// quiet is the time for which the same fault of a provider, or of the disk, is no alert again.
	quiet = time.Hour
	// patience bounds the wait for a limiter.
	patience = time.Second
)

// Options configure a Watcher.
type Options struct {
	Logger    *slog.Logger
	State     *state.State
	Ledger    *ledger.Client
	Providers func() []*engine.Provider
	// Disk returns the bytes that are free where the state is kept, below how many of them changes are refused, and
	// false if the state is on no disk.
	Disk func() (free, refused int64, ok bool)
}

// Watcher looks for alerts. Close ends it.
type Watcher struct {
	options Options
	ctx     context.Context
	stop    context.CancelFunc
	running conc.WaitGroup
	wake    chan struct{} // holds a value if something was spent

	mu      sync.Mutex
	changed map[budget.Scope]int64 // have spent something since the last look, or refused as much; see refused
	all     bool                   // there were more of them

	// The rest belongs to the goroutine.
	version  uint64 // of the budgets that were compared last, plus one
	scanned  time.Time
	refusals map[string]refusals // of keys, by provider
	wanted   bool                // alerts of budgets, at the last look
}

// refusals are those of a client's keys for which there was an alert. A reload makes another client, which counts anew.
type refusals struct {
	client *upstream.Client
	number int64
}

// Start starts a watcher, which first compares all budgets.
func Start(o Options) *Watcher {
	w := &Watcher{options: o, changed: map[budget.Scope]int64{}, refusals: map[string]refusals{},
		wake: make(chan struct{}, 1)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	money.OnSpent(o.State, w.spent)
	o.Ledger.OnRefused(w.refused)
	w.running.Go(w.watch)
	return w
}

// Close ends the watcher.
func (w *Watcher) Close() {
	w.options.Ledger.OnRefused(nil)
	money.OnSpent(w.options.State, nil)
	w.stop()
	w.running.Wait()
}

// spent has the next look compare the scopes of a change of spending. The writer of the state calls it.
func (w *Watcher) spent(scope, account string) {
	w.note(budget.ScopeNamed(scope), 0)
	if account != "" && !state.IsKeyAccount(account) {
		w.note(budget.Scope{Kind: budget.UserScope, ID: account}, 0)
	}
}

// refused has the next look consider that a budget did not cover a request. It ignores a request that may cost more
// than the whole budget, because such a request is refused whatever was spent.
func (w *Watcher) refused(e *budget.Error) {
	if e.Asked <= e.Budget.Amount {
		w.note(e.Scope, e.Asked)
	}
}

// note adds a scope to those that the next look compares, and wakes the watcher. asked is what a request may cost that
// the scope did not cover, or 0. If too many scopes have changed, the next look compares all.
func (w *Watcher) note(scope budget.Scope, asked int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	if _, noted := w.changed[scope]; !noted && len(w.changed) >= maxChanged {
		w.all = true
		return
	}
	w.changed[scope] = max(w.changed[scope], asked)
}

// watch looks for alerts until the watcher ends: at everything in intervals, and at the budgets
// shortly after a change. Changes of spending are gathered for a while, because each request that
// is charged is one.
func (w *Watcher) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	gathered := time.NewTimer(0)
	defer gathered.Stop()
	w.look()
	for {
		select {
		case <-w.wake:
			gathered.Reset(gather)
		case <-gathered.C:
			w.lookAtBudgets()
		case <-tick.C:
			w.look()
		case <-w.ctx.Done():
			return
		}
	}
}

// look finds what is to be sent now.
func (w *Watcher) look() {
	w.lookAtBudgets()
	w.lookAtProviders()
	if free, refused, ok := w.options.Disk(); ok && free < 4*refused {
		w.add(work.AlertDisk, "", map[string]any{"free_bytes": free, "changes_refused_below_bytes": refused})
	}
}

// lookAtBudgets compares the budgets of the scopes that have spent something, or all.
func (w *Watcher) lookAtBudgets() {
	w.mu.Lock()
	changed, all := w.changed, w.all
	w.changed, w.all = map[budget.Scope]int64{}, false
	w.mu.Unlock()
	wanted := work.AlertsWanted(w.options.State, work.AlertBudget)
	all = all || wanted && !w.wanted
	if w.wanted = wanted; !wanted {
		return
	}
	now := time.Now()
	if version := identity.AccessOf(w.options.State).AccessVersion() + 1; all ||
		version != w.version && now.Sub(w.scanned) >= scanEvery {
		w.version, w.scanned = version, now
		budgeted := w.budgeted()
		w.forget(budgeted)
		for scope := range budgeted {
			if _, noted := changed[scope]; !noted {
				changed[scope] = 0
			}
		}
	}
	for scope, asked := range changed {
		if !w.compare(scope, asked) { // the store takes no changes now
			w.again(changed)
			return
		}
	}
}

// again has the next look compare all budgets, because an earlier look failed. It keeps the scopes that have refused a
// request, because the next look cannot find that out by itself.
func (w *Watcher) again(changed map[budget.Scope]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = true
	for scope, asked := range changed {
		if asked > 0 && len(w.changed) < maxChanged {
			w.changed[scope] = max(w.changed[scope], asked)
		}
	}
}

// forget removes what is kept of scopes without a budget. budgeted are all those with one, at w.version.
func (w *Watcher) forget(budgeted map[budget.Scope]bool) {
	names := func(yield func(string) bool) {
		for scope := range budgeted {
			if !yield(scope.Name()) {
				return
			}
		}
	}
	s := w.options.State
	w.report(work.ForgetBudgetAlerts(w.ctx, s, names, func() bool {
		return identity.AccessOf(s).AccessVersion()+1 == w.version
	}))
}

// budgeted returns all scopes with a budget.
func (w *Watcher) budgeted() map[budget.Scope]bool {
	view, all := w.options.State.View(), map[budget.Scope]bool{}
	identity.EachKey(view, func(k *identity.Key) bool {
		if k.Limit().Amount > 0 {
			all[budget.Scope{Kind: budget.KeyScope, ID: k.ID}] = true
		}
		return true
	})
	identity.EachUser(view, func(u *identity.User) bool {
		if u.Ceiling.Budget > 0 {
			all[budget.Scope{Kind: budget.UserScope, ID: u.Username}] = true
		}
		return true
	})
	for _, g := range identity.ListGroups(view) {
		if g.Ceiling.Budget > 0 {
			all[g.Scope()] = true
		}
	}
	return all
}

// compare adds the alerts of a budget that did not cover a request which may cost asked, unless that is 0. It reports
// false if that failed. A refusal counts as the last level if it is because of what was spent. One because of what
// other requests hold does not, since they may cost less.
func (w *Watcher) compare(scope budget.Scope, asked int64) bool {
	s := w.options.State
	limit := identity.AccessOf(s).BudgetOf(scope)
	if limit.Amount <= 0 {
		return true
	}
	spend := money.SpentBy(s.View(), scope)
	begin, spent := spend.Period(limit.Window)
	b := work.BudgetAlert{Scope: scope.Name(), Period: uint64(max(begin.Unix(), 0)), Kind: kinds[limit.Window.Name()],
		Amount: limit.Amount, Refused: asked > limit.Amount-spend.In(limit.Window, s.View().Now())}
	for i, percent := range work.BudgetLevels {
		if spent > 0 && spent >= partOf(limit.Amount, percent) {
			b.Reached |= 1 << i
		}
	}
	if !work.BudgetAlertDue(s.View(), &b) {
		return true
	}
	data := map[string]any{"kind": "key", "id": scope.ID, "window": limit.Window.Name(),
		"budget_usd": dollars(limit.Amount), "spent_usd": dollars(spent)}
	if scope.Kind != budget.KeyScope {
		data["kind"] = scope.Kind
	}
	if !begin.IsZero() {
		data["period_begins"] = begin.Format(time.DateOnly)
	}
	w.describe(scope, data)
	b.Data = func(percent int64) json.RawMessage {
		data["percent"] = percent
		delete(data, "refused_usd") // of a level before
		if percent == 100 && spent < limit.Amount {
			data["refused_usd"] = dollars(asked)
		}
		return marshal(data)
	}
	err := state.Run(w.ctx, s, func(tx *state.Tx) error { return work.AddBudgetAlert(tx, &b) })
	return w.report(err)
}

// kinds gives each window the number that is stored with an alert, so that a day and a month that begin at the same
// time are different periods.
var kinds = map[budget.Window]uint64{budget.WindowTotal: 1, budget.WindowDay: 2, budget.WindowMonth: 3}

// partOf returns a part of an amount in per cent, rounded up. It divides first where a product could overflow.
func partOf(amount, percent int64) int64 { return amount/100*percent + (amount%100*percent+99)/100 }

// describe adds the names of a key with its user, or of a group.
func (w *Watcher) describe(scope budget.Scope, data map[string]any) {
	view := w.options.State.View()
	switch scope.Kind {
	case budget.KeyScope:
		if k, err := identity.FindKey(view, scope.ID); err == nil {
			data["name"], data["user"] = k.Name, k.User
		}
	case budget.GroupScope:
		for _, g := range identity.ListGroups(view) {
			if g.Scope() == scope {
				data["name"] = g.Name
			}
		}
	}
}

// lookAtProviders adds alerts for keys that were refused, and for breakers that are open. It tries again at each look
// while a fault lasts, so that one which begins in the quiet time after an alert is an alert when that time ends.
func (w *Watcher) lookAtProviders() {
	for _, p := range w.options.Providers() {
		name := p.Spec.Name
		if p.Client != nil {
			seen := w.refusals[name]
			if seen.client != p.Client {
				seen = refusals{client: p.Client}
			}
			if n := p.Client.Keys().Refusals(); n > seen.number && w.add(work.AlertKeyRefused, name,
				map[string]any{"provider": name, "keys": len(p.Client.Keys().All())}) {
				seen.number = n
			}
			w.refusals[name] = seen
		}
		ctx, cancel := context.WithTimeout(w.ctx, patience)
		stats, err := p.Limiter.Stats(ctx)
		cancel()
		if err == nil && stats.Breaker == throttle.Open {
			w.add(work.AlertUnavailable, name, map[string]any{"provider": name,
				"reopens_seconds": int64(stats.ReopensIn / time.Second)})
		}
	}
}

// add adds an alert. It reports false if that failed, or if the last alert of the kind was within the quiet time. If no
// webhook wants the alert, it does nothing and reports true.
func (w *Watcher) add(event, subject string, data map[string]any) bool {
	if !work.AlertsWanted(w.options.State, event) {
		return true
	}
	added, err := state.Do(w.ctx, w.options.State, func(tx *state.Tx) (bool, error) {
		return work.AddAlert(tx, event, subject, marshal(data), quiet)
	})
	return w.report(err) && added
}

// report logs an error, unless it is the end of the watcher, and reports whether there was none.
// What could not be sent is found again at the next look.
func (w *Watcher) report(err error) bool {
	if err != nil && w.ctx.Err() == nil {
		w.options.Logger.Warn("an alert is not sent yet", "cause", err)
	}
	return err == nil
}

// marshal returns the data of an alert as JSON.
func marshal(data map[string]any) json.RawMessage {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // there are only texts and numbers
	}
	return text
}

// dollars returns micro-dollars as dollars.
func dollars(micros int64) float64 { return float64(micros) / 1e6 }

// SendTest adds an alert that says nothing but that alerts arrive. A caller can therefore test the webhooks of an
// installation without an event that went wrong. It succeeds, and adds nothing, if no webhook wants alerts of this
// type; the error is one of the state's.
func SendTest(ctx context.Context, s *state.State) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		data := json.RawMessage(`{"message":"Alerts of this gateway arrive here."}`)
		_, err := work.AddAlert(tx, work.AlertTest, "", data, 0)
		return err
	})
}
