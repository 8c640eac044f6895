package alerts_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/alerts"
	"stagedoor/actors/engine"
	"stagedoor/actors/kit"
	"stagedoor/actors/ledger"
	"stagedoor/actors/throttle"
	"stagedoor/actors/webhook"
	"stagedoor/providers/catalog"
	"stagedoor/providers/upstream"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
)

const secret = "whsec_c3RhZ2Vkb29yIHNpZ25zIHdoYXQgaXQgc2VuZHM="

// fixture is a gateway's state whose alerts a server on this machine receives.
type fixture struct {
	t         *testing.T
	store     *statetest.Faulty
	system    *kit.System
	watchers  []*alerts.Watcher
	state     *state.State
	ledger    *ledger.Client
	endpoint  webhook.Endpoint
	providers []*engine.Provider
	free      int64
	now       time.Time
	looked    chan struct{} // holds a value if a watcher has looked at everything

	mu       sync.Mutex
	received []string // type and percent of each event
	bodies   []string
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, store: statetest.NewFaulty(), free: 1 << 40, looked: make(chan struct{}, 1),
		now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v1,") {
			t.Errorf("an event without a signature, %v", err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.bodies = append(f.bodies, string(body))
		f.received = append(f.received, strings.TrimSpace(gjson.GetBytes(body, "type").String()+" "+
			gjson.GetBytes(body, "data.percent").String()))
	}))
	t.Cleanup(server.Close)
	key, err := webhook.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	f.endpoint = webhook.Endpoint{Webhook: work.Webhook{ID: "wha_1", Alerts: true}, URL: server.URL, Key: key,
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	f.open()
	t.Cleanup(f.close)
	return f
}

// open starts a process on the store. Each commit is decided twice, as it is where several nodes share a store.
func (f *fixture) open() {
	f.t.Helper()
	var err error
	if f.state, err = schema.Open(statetest.DecideTwice(f.store), f.clock); err != nil {
		f.t.Fatal(err)
	}
	f.system = kit.NewSystem(kit.Options{Logger: slog.New(slog.DiscardHandler)})
	hooks, err := webhook.Start(f.system, f.state)
	if err != nil {
		f.t.Fatal(err)
	}
	hooks.Configure([]webhook.Endpoint{f.endpoint})
	if f.ledger, err = ledger.New(f.system, f.state); err != nil {
		f.t.Fatal(err)
	}
	f.watcher()
}

func (f *fixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// set changes what the process sees.
func (f *fixture) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// close ends the process.
func (f *fixture) close() {
	f.t.Helper()
	for _, w := range f.watchers {
		w.Close()
	}
	f.watchers = nil
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(f.system.Stop(ctx), f.state.Close()); err != nil {
		f.t.Error(err)
	}
}

// watcher starts one more watcher on the state.
func (f *fixture) watcher() {
	f.watchers = append(f.watchers, alerts.Start(alerts.Options{Logger: slog.New(slog.DiscardHandler), State: f.state,
		Ledger:    f.ledger,
		Providers: func() (all []*engine.Provider) { f.set(func() { all = f.providers }); return all },
		Disk: func() (free, refused int64, ok bool) {
			f.set(func() { free = f.free })
			select {
			case f.looked <- struct{}{}: // the disk is the last that a watcher looks at
			default:
			}
			return free, 256 << 20, true
		}}))
}

// expect waits until the events have arrived, and that no delivery is left.
func (f *fixture) expect(want ...string) {
	f.t.Helper()
	slices.Sort(want)
	for late := time.After(time.Minute); ; {
		// A delivery is removed after its event was received, so there is a change after the last event.
		view, changed := work.WatchDeliveries(f.state)
		waiting := 0
		work.Deliveries(view, f.endpoint.ID, func(*work.Delivery) bool { waiting++; return true })
		f.mu.Lock()
		got := slices.Sorted(slices.Values(f.received))
		f.mu.Unlock()
		if slices.Equal(got, want) && waiting == 0 {
			return
		}
		select {
		case <-changed:
		case <-late:
			f.t.Fatalf("received %q, want %q", got, want)
		}
	}
}

// budgets makes a key with a monthly budget of ten dollars, of a user in a group with a budget of a hundred in all.
func (f *fixture) budgets() {
	f.t.Helper()
	err := state.Run(f.t.Context(), f.state, func(tx *state.Tx) error {
		g, err := identity.AddGroup(tx, identity.Group{Name: "team", Ceiling: identity.Ceiling{Budget: 100_000_000}})
		if err != nil {
			return err
		}
		_, err = identity.AddUser(tx, identity.User{Username: "anna", Group: g.ID, Status: identity.UserActive,
			Ceiling: identity.Ceiling{Budget: 20_000_000, Window: budget.WindowDay}})
		return err
	})
	if err == nil {
		err = identity.CreateKeyOfUser(f.t.Context(), f.state, identity.Key{ID: "key_1", Name: "laptop", User: "anna",
			Hash: state.Hash{1}, Prefix: "abc", Budget: 10_000_000, Window: budget.WindowMonth})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// limit changes the budget of the key.
func (f *fixture) limit(micros int64) {
	f.t.Helper()
	err := state.Run(f.t.Context(), f.state, func(tx *state.Tx) error {
		k, err := identity.FindKey(tx.View(), "key_1")
		if k.Budget = micros; err != nil {
			return err
		}
		return identity.PutKey(tx, k)
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) spend(micros int64) {
	f.t.Helper()
	receipt := &money.Receipt{Request: "req_1", Key: "key_1", Model: "m", Scopes: []string{"group:1"}}
	_, results, err := money.CommitPostings(f.t.Context(), f.state, "anna", []money.Posting{
		{Kind: money.Credit, Amount: micros}, {Kind: money.Settle, Amount: micros, Receipt: receipt}})
	if err != nil || results[1].Err != nil {
		f.t.Fatal(err, results)
	}
}

func TestEachLevelOfABudgetIsSentOncePerPeriodAcrossProcesses(t *testing.T) {
	f := newFixture(t)
	f.budgets()
	f.spend(4_999_999)
	f.spend(1)
	want := []string{"budget.reached 50"}
	f.expect(want...)
	f.watcher() // another process finds the same
	f.spend(3_500_000)
	want = append(want, "budget.reached 80")
	f.expect(want...)
	f.spend(1_500_000) // all of the key's budget, and half of the user's
	want = append(want, "budget.reached 100", "budget.reached 50")
	f.expect(want...)
	f.close()
	f.open() // a process that starts again compares all budgets
	f.spend(1)
	f.expect(want...)
	f.set(func() { f.now = f.now.AddDate(0, 1, 0) })
	f.spend(5_000_000) // half of the next month's
	want = append(want, "budget.reached 50")
	f.expect(want...)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range []string{`"name":"laptop"`, `"user":"anna"`, `"kind":"key"`, `"window":"month"`,
		`"budget_usd":10`, `"period_begins":"2026-11-01"`} {
		if !strings.Contains(f.bodies[0], text) {
			t.Errorf("%s lacks %s", f.bodies[0], text)
		}
	}
}

func TestWhatWasSentIsForgottenWithItsKey(t *testing.T) {
	f := newFixture(t)
	f.budgets()
	f.spend(9_900_000)
	f.expect("budget.reached 50", "budget.reached 80")
	kept := func() (n int) {
		for range f.state.View().Facts("alert/budget/") {
			n++
		}
		return n
	}
	before := kept()
	if err := identity.DeleteKey(t.Context(), f.state, "key_1"); err != nil {
		t.Fatal(err)
	}
	f.close()
	f.looked = make(chan struct{}, 1)
	f.open() // a process that starts compares all budgets
	if <-f.looked; kept() != before-1 {
		t.Fatalf("%d of %d facts are kept", kept(), before)
	}
}

// A raised budget is reached again, and a level that was passed already is not sent for it.
func TestALevelIsSentAgainOnlyAfterTheBudgetWasRaisedAboveIt(t *testing.T) {
	f := newFixture(t)
	f.budgets()
	f.spend(8_000_000)
	want := []string{"budget.reached 50", "budget.reached 80"}
	f.expect(want...)
	levels := func() (all uint64) {
		view := f.state.View()
		for name := range view.Facts("alert/budget/") {
			all += view.NumberFact(name)
		}
		return all
	}
	before := levels()
	f.limit(100_000_000)
	f.spend(1)
	for late := time.Now().Add(time.Minute); levels() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the watcher does not look at the raised budget")
		}
	}
	f.expect(want...)
	f.spend(2_000_000) // half of the user's
	want = append(want, "budget.reached 50")
	f.expect(want...)
	f.limit(20_000_000)
	f.spend(1)
	f.expect(append(want, "budget.reached 50")...)
}

// The last level is reached, too, when what is spent leaves too little for a request, although it is not all.
func TestABudgetThatRefusesARequestIsReached(t *testing.T) {
	f := newFixture(t)
	err := state.Run(t.Context(), f.state, func(tx *state.Tx) error {
		_, err := identity.AddUser(tx, identity.User{Username: "bob", Status: identity.UserActive})
		return err
	})
	if err == nil {
		err = identity.CreateKeyOfUser(t.Context(), f.state, identity.Key{ID: "key_1", Name: "ci", User: "bob",
			Hash: state.Hash{1}, Prefix: "abc"})
	}
	if err != nil {
		t.Fatal(err)
	}
	f.limit(10_000_000)
	hold := func(dollars int64) *ledger.Hold {
		h, err := f.ledger.Hold(t.Context(), ledger.Ask{Account: "bob", RequestID: "req_2", Amount: dollars * 1e6,
			Key: "key_1"})
		if err != nil {
			return nil
		}
		return h
	}
	settle := func(h *ledger.Hold, dollars int64) {
		t.Helper()
		if err := h.Settle(t.Context(), ledger.Settlement{Amount: dollars * 1e6}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.ledger.Credit(t.Context(), "bob", 1e9, "test"); err != nil {
		t.Fatal(err)
	}
	settle(hold(3), 3)
	h := hold(6)
	hold(2)  // is refused because of the request that holds 6
	hold(11) // is more than the budget
	settle(h, 4)
	want := []string{"budget.reached 50"}
	f.expect(want...)
	var full atomic.Bool // the store takes no changes when the alert is found first
	f.store.Before(func([]journal.Batch) error {
		if full.CompareAndSwap(false, true) {
			return journal.ErrReadOnly
		}
		return nil
	})
	hold(4) // is refused because of the 7 that are spent
	want = append(want, "budget.reached 100")
	f.expect(want...)
	if !full.Load() {
		t.Error("the store was not full")
	}
	f.close()
	f.open()
	hold(4)
	settle(hold(1), 1)
	want = append(want, "budget.reached 80")
	f.expect(want...)
	f.limit(12_000_000)
	settle(hold(1), 0)
	hold(5)
	want = append(want, "budget.reached 100")
	f.expect(want...)
	if all := strings.Join(f.bodies, " "); strings.Count(all, "refused_usd") != 2 ||
		!strings.Contains(all, `"refused_usd":4`) || !strings.Contains(all, `"refused_usd":5`) {
		t.Errorf("the events are %s", all)
	}
}

func TestFaultsOfProvidersAndAFillingDiskAreSentOnce(t *testing.T) {
	f := newFixture(t)
	limiter, err := throttle.Spawn(f.system, "openai", throttle.Config{})
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"sk-hidden", "sk-two"}
	client, err := upstream.New(upstream.Options{BaseURL: "http://127.0.0.1:1", APIKeys: keys})
	if err != nil {
		t.Fatal(err)
	}
	client.Keys().RecordFailure("sk-hidden", "m", &upstream.Failure{Class: upstream.Credential}, time.Now())
	permit, err := limiter.Acquire(t.Context(), throttle.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	permit.Release(throttle.Outcome{Kind: throttle.Credential})
	f.set(func() {
		f.providers = []*engine.Provider{{Spec: &catalog.Provider{Name: "openai"}, Client: client, Limiter: limiter}}
		f.free = 900 << 20
	})
	want := []string{"provider.key_refused", "provider.unavailable", "disk.filling"}
	f.watcher()
	f.expect(want...)
	f.watcher() // of another process
	f.expect(want...)
	f.mu.Lock()
	defer f.mu.Unlock()
	all := strings.Join(f.bodies, " ")
	if strings.Contains(all, "sk-") || !strings.Contains(all, `"provider":"openai"`) {
		t.Errorf("the events are %s", all)
	}
}

// A second fault within the hour is an alert when the hour has passed and it lasts, and so is each further hour of it.
func TestAFaultThatLastsIsAnAlertOnceAnHour(t *testing.T) {
	f := newFixture(t)
	limiter, err := throttle.Spawn(f.system, "openai", throttle.Config{})
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"sk-one", "sk-two"}
	refused := func() *upstream.Client {
		client, err := upstream.New(upstream.Options{BaseURL: "http://127.0.0.1:1", APIKeys: keys})
		if err != nil {
			t.Fatal(err)
		}
		client.Keys().RecordFailure("sk-one", "m", &upstream.Failure{Class: upstream.Credential}, time.Now())
		return client
	}
	openai := func(client *upstream.Client) []*engine.Provider {
		return []*engine.Provider{{Spec: &catalog.Provider{Name: "openai"}, Client: client, Limiter: limiter}}
	}
	client := refused()
	f.set(func() { f.providers = openai(client) })
	want := []string{"provider.key_refused"}
	f.watcher()
	f.expect(want...)

	// Half an hour later a reload has made another client, a key of which is refused once, and the breaker opens.
	client = refused()
	permit, err := limiter.Acquire(t.Context(), throttle.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	permit.Release(throttle.Outcome{Kind: throttle.Credential})
	f.set(func() { f.now, f.providers = f.now.Add(30*time.Minute), openai(client) })
	want = append(want, "provider.unavailable")
	f.expect(want...)
	f.set(func() { f.now = f.now.Add(31 * time.Minute) })
	want = append(want, "provider.key_refused")
	f.expect(want...)
	f.set(func() { f.now = f.now.Add(30 * time.Minute) })
	want = append(want, "provider.unavailable")
	f.expect(want...)
}

func TestATestOfAlertsArrivesEachTime(t *testing.T) {
	f := newFixture(t)
	f.endpoint.Types = []string{work.AlertDisk}
	f.close()
	f.open()
	for range 2 {
		if err := alerts.SendTest(t.Context(), f.state); err != nil {
			t.Fatal(err)
		}
		f.set(func() { f.now = f.now.Add(time.Second) })
	}
	f.budgets()
	f.spend(9_000_000) // is not wanted
	f.expect("alert.test", "alert.test")
}

// While no alerts are wanted nothing counts as sent, so that the setting has an effect at once.
func TestALevelThatWasReachedBeforeAlertsWereWantedIsSentThen(t *testing.T) {
	f := newFixture(t)
	f.endpoint.Types = []string{work.AlertDisk}
	f.close()
	f.open()
	f.budgets()
	f.spend(5_000_000)
	f.close()
	f.endpoint.Types = nil
	f.open()
	f.expect("budget.reached 50")
}
