package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/money"
	"stagedoor/state/share"
)

// End reasons that the ledger sets itself.
const (
	ReasonCrash = "crash"       // the process ended during the request
	ReasonLeft  = "client_left" // the client disconnected before its hold was granted
)

// Client holds, settles and reports the money of all accounts. Any goroutine may use it.
type Client struct {
	system *kit.System
	store  *state.State
	parent *actor.PID

	mu       sync.RWMutex
	accounts map[string]*actor.PID

	shared    shared
	uncounted uncounted
	counts    counts
	processes atomic.Int64 // that share the accounts; see ShareAccounts
	refused   atomic.Pointer[func(*budget.Error)]
}

// New returns a running ledger. Recover must have ended before it is called. Where this process is the only one to
// change the accounts, it reads the open holds and the budgets once, because later changes pass through it. Where there
// are several, each decision reads them from the state, and New also subscribes to the recalls of allowances by other
// processes.
func New(system *kit.System, store *state.State) (*Client, error) {
	c := &Client{system: system, store: store, accounts: make(map[string]*actor.PID)}
	if !store.Several() {
		c.shared.load(money.ListHolds(store.View(), ""), budgetsOf(store))
	}
	props := system.Props("ledger", func() actor.Actor { return &parent{client: c} },
		kit.WithSupervisor(resume(system)))
	var err error
	if c.parent, err = system.SpawnUnique(props, "ledger"); err != nil {
		return nil, err
	}
	if store.Several() {
		money.OnRecall(store, func(account string, name money.AllowanceName) {
			system.Send(c.parent, &recalling{account, name})
		})
	}
	c.uncounted.client, c.uncounted.rows = c, make(map[usageName]*money.UsageRow)
	c.uncounted.places = share.New(share.Usage, maxCounted, 1)
	c.uncounted.pid, err = system.SpawnUnique(
		system.Props("usage", func() actor.Actor { return &counter{client: c} }),
		"usage",
	)
	return c, err
}

// newCore returns the core of an account as the store has it.
func (c *Client) newCore(v state.View, account string) *core {
	if !c.store.Several() {
		return newCore(money.FindAccount(v, account), money.ListHolds(v, account), budgetsOf(c.store), &c.shared)
	}
	core := newCore(money.FindAccount(v, account), nil, budgetsOf(c.store), &c.shared)
	var seen uint64 // by the last look at the account
	var solvent bool
	core.others = &others{
		room:      func(b *bounds) int64 { return money.Room(c.store.View(), account, b.limits()) },
		processes: c.processes.Load,
		usable: func() bool {
			if published := c.store.Published(); published != seen {
				a := money.FindAccount(c.store.View(), account)
				seen, solvent = published, a.Unfunded() || a.Available() >= 0
			}
			return solvent && c.store.MayGrant()
		},
	}
	core.allowances = make(map[money.AllowanceName]*allowance)
	core.adoptAllowances(slices.DeleteFunc(money.ListAllowances(v, account),
		func(a money.Allowance) bool { return a.Node != c.store.Node() }))
	return core
}

// ShareAccounts sets how many processes share the accounts. An allowance then gets at most 1/(2*processes) of what an
// account has left.
func (c *Client) ShareAccounts(processes int) { c.processes.Store(int64(processes)) }

// OnRefused sets the function that is called with each request, and each extension of one, that a budget did not
// cover. It must not block, because the request waits for it. Nil calls nothing.
func (c *Client) OnRefused(report func(*budget.Error)) {
	if report == nil {
		c.refused.Store(nil)
		return
	}
	c.refused.Store(&report)
}

// noticeRefusal calls the function of OnRefused if err says that a budget is too small.
func (c *Client) noticeRefusal(err error) {
	if over, ok := errors.AsType[*budget.Error](err); ok {
		if report := c.refused.Load(); report != nil {
			(*report)(over)
		}
	}
}

// resume makes an account continue after a message panicked, because only its core knows the
// holds that are not journaled yet.
func resume(system *kit.System) *kit.Backoff {
	return &kit.Backoff{
		Decide: func(any) actor.Directive { return actor.ResumeDirective },
		Report: func(f kit.Failure) {
			system.Logger().Error("account actor failed", "actor", f.Child, "reason", f.Reason)
		},
	}
}

// Ask describes a request that needs a hold.
type Ask struct {
	Account   string
	RequestID string
	// Amount is the most that the request is expected to cost, in micro-dollars.
	Amount int64
	// Durable makes Hold wait until the hold would survive a crash. It is for work that must
	// not be done twice or unpaid: images and videos.
	Durable bool
	// Key is the ID of the API key of the request. What the key spends and holds together
	// stays within its current budget.
	Key string
	// Model and Provider are recorded in the receipt.
	Model, Provider string
}

// receipt returns the receipt that begins with what is known before the request.
func (a *Ask) receipt() money.Receipt {
	return money.Receipt{Request: a.RequestID, Key: a.Key, Model: a.Model, Provider: a.Provider}
}

// Settlement is the charge for a request that has ended.
type Settlement struct {
	Amount int64 // micro-dollars
	// Reason is the end reason, as in End.String.
	Reason string
	// Receipt contains the model, provider, attempts, usage, prices and flags. It may be nil.
	// The ledger owns it afterwards.
	Receipt *money.Receipt
}

// Balance is a snapshot of an account in micro-dollars. Held includes holds that are not
// journaled.
type Balance struct{ Credits, Spent, Held int64 }

// Available returns the amount that can still be held. It is negative while the account is
// in debt.
func (b Balance) Available() int64 { return b.Credits - b.Spent - b.Held }

// Hold reserves money for one request. The first Settle or Release ends it; later calls
// change nothing and return the result of the first. A hold that is never ended is kept
// until the process ends.
type Hold struct {
	client  *Client
	account string
	pid     *actor.PID
	hold    *hold
	amount  atomic.Int64
	ended   atomic.Bool // its end has been counted
}

// Amount returns the held amount in micro-dollars.
func (h *Hold) Amount() int64 { return h.amount.Load() }

// Hold returns a hold of ask.Amount. Its error is a *dialogue.Error: 429 insufficient_quota
// if the account does not have the amount (money.ErrInsufficient) or a budget does not cover
// it (*budget.Error), and 503 if the journal cannot be written. One of several processes grants
// most holds out of an allowance, without a commit. It asks more than once before it refuses for
// want of money, because another one may have ended a request of the account a moment ago whose
// settlement is not in the journal yet, or has the money in an allowance, which is recalled.
func (c *Client) Hold(ctx context.Context, ask Ask) (held *Hold, err error) {
	err = c.retryShort(ctx, ask.Account, true, func() (err error) {
		held, err = c.tryHold(ctx, ask)
		return err
	})
	c.counts.asked(err)
	c.noticeRefusal(err)
	return held, refusal(err)
}

// tryHold asks for a hold once. Its error is the cause, which refusal turns into the error for the client.
func (c *Client) tryHold(ctx context.Context, ask Ask) (*Hold, error) {
	var held *Hold
	err := c.askAccount(ctx, ask.Account, func(pid *actor.PID) error {
		m := &holding{ask: ask}
		granted, err := kit.Ask(ctx, c.system, pid, m)
		if err != nil {
			if ctx.Err() != nil {
				c.system.Send(pid, &leaving{m})
			}
			return err
		}
		held = &Hold{client: c, account: ask.Account, pid: pid, hold: granted}
		held.amount.Store(ask.Amount)
		return nil
	})
	return held, err
}

// Resume returns the hold of a request that began in a previous process and that Recover has kept. It returns an error
// if the account has no such hold, for example because it has been settled.
func (c *Client) Resume(ctx context.Context, account, requestID string) (*Hold, error) {
	var held *Hold
	err := c.askAccount(ctx, account, func(pid *actor.PID) error {
		found, err := kit.Ask(ctx, c.system, pid, &resuming{request: requestID})
		if err != nil {
			return err
		}
		held = &Hold{client: c, account: account, pid: pid, hold: found.hold}
		held.amount.Store(found.amount)
		return nil
	})
	return held, err
}

// Extend adds to the held amount. It fails as Client.Hold does and then changes nothing.
func (h *Hold) Extend(ctx context.Context, amount int64) error {
	err := h.client.retryShort(ctx, h.account, false, func() error {
		_, err := kit.Ask(ctx, h.client.system, h.pid, &extending{hold: h.hold, amount: amount})
		return err
	})
	if err != nil {
		h.client.noticeRefusal(err)
		return refusal(err)
	}
	h.amount.Add(amount)
	return nil
}

// Room returns the amount that Extend could add now, limited by the balance and the budgets. The answer is out of date
// as soon as another request of the account changes its hold, so Extend decides again and may refuse. The error is that
// of an account's actor that has stopped or of ctx.
func (h *Hold) Room(ctx context.Context) (int64, error) {
	return kit.Ask(ctx, h.client.system, h.pid, &roomAsk{hold: h.hold})
}

// Progress records what the request has cost so far, which is charged if the process is
// killed. It does not wait. Calling it every 10 s or 4,000 tokens is enough.
func (h *Hold) Progress(amount int64) {
	h.client.system.Send(h.pid, &progressing{h.hold, amount})
}

// Settle ends the hold with a charge and returns when that is durable. A charge above the
// hold that the account cannot pay leaves a debt. If Settle fails, the hold is still open and
// can be settled again or released. If ctx ends, the hold is settled nevertheless.
func (h *Hold) Settle(ctx context.Context, s Settlement) error {
	_, err := kit.Ask(ctx, h.client.system, h.pid, &settling{hold: h.hold, settlement: s})
	h.settled(s.Amount, err)
	return refusal(err)
}

// SettleWithin does the same as Settle but waits for d instead of a context, for requests
// whose context has ended already.
func (h *Hold) SettleWithin(d time.Duration, s Settlement) error {
	_, err := kit.AskWithin(d, h.client.system, h.pid, &settling{hold: h.hold, settlement: s})
	h.settled(s.Amount, err)
	return refusal(err)
}

// SettleLater ends the hold with a charge and does not wait. The rest of the hold is free at once,
// and for other processes when the charge is durable, for which Client.Hold waits.
// The charge is durable after linger and a commit, which is repeated until it succeeds. A crash
// before that charges what Recover finds, which is the last progress or nothing. It is for text
// requests, whose clients would otherwise wait for the disk at the end of each reply.
func (h *Hold) SettleLater(s Settlement) {
	h.client.system.Send(h.pid, &charging{h.hold, s, h.client.system.Logger()})
	h.settled(s.Amount, nil)
}

// Release ends the hold without a charge. It does not wait, because the money is free at
// once and a crash would release it, too. The receipt is as in Settlement.
func (h *Hold) Release(reason string, receipt *money.Receipt) {
	h.client.system.Send(h.pid, &releasing{h.hold, reason, receipt})
	h.released()
}

// Balance returns the balance of an account. An unknown account has a balance of zero.
func (c *Client) Balance(ctx context.Context, account string) (Balance, error) {
	if c.store.Several() || c.actorOf(account) == nil {
		a := money.FindAccount(c.store.View(), account)
		return Balance{Credits: a.Credits, Spent: a.Spent, Held: a.Held}, nil
	}
	var b Balance
	err := c.askAccount(ctx, account, func(pid *actor.PID) (err error) {
		b, err = kit.Ask(ctx, c.system, pid, &balanceAsk{})
		return err
	})
	return b, err
}

// Moving reports whether a request of an account has a hold whose end is not durable yet, so
// that it has no receipt.
func (c *Client) Moving(ctx context.Context, account, request string) (bool, error) {
	if c.store.Several() && money.FindHoldOf(c.store.View(), account, request) != nil {
		return true, nil
	}
	pid := c.actorOf(account)
	if pid == nil {
		return false, nil
	}
	moving, err := kit.Ask(ctx, c.system, pid, &movingAsk{request: request})
	var stopped *kit.Rejected
	if errors.As(err, &stopped) {
		return false, nil // it has just stopped, so there was no open hold
	}
	return moving, err
}

// Credit adds money to an account and returns when that is durable. The error is state.ErrInvalid for an amount that is
// not positive.
func (c *Client) Credit(ctx context.Context, account string, amount int64, reason string) error {
	if amount <= 0 {
		return fmt.Errorf("%w: a credit of %d", state.ErrInvalid, amount)
	}
	_, results, err := money.CommitPostings(ctx, c.store, account,
		[]money.Posting{{Kind: money.Credit, Amount: amount, Reason: reason}})
	if err != nil {
		return err
	}
	return results[0].Err
}

// Adjust corrects the credits up or down and returns when that is durable. It fails with
// money.ErrInsufficient if it would take money that is spent or held.
func (c *Client) Adjust(ctx context.Context, account string, amount int64, reason string) error {
	return c.adjust(ctx, account, amount, reason, "")
}

// Redeem credits an account with the amount of a code. It fails with state.ErrNotFound, or
// with money.ErrRedeemed if the code was used before.
func (c *Client) Redeem(ctx context.Context, account, code string) (amount int64, err error) {
	_, redeemed, err := money.Redeem(ctx, c.store, account, code)
	return redeemed.Amount, err
}

// maxMint bounds the codes of one command.
const maxMint = 1000

// Mint returns count new redeem codes of amount each. The codes themselves are not stored, so the caller shows them
// once. All codes are stored in one commit, or none of them is. The error is state.ErrInvalid for a count below 1 or
// above maxMint.
func (c *Client) Mint(
	ctx context.Context,
	count int,
	amount int64,
	by string,
	expires time.Time,
	random io.Reader,
) (codes []string, records []money.RedeemCode, err error) {
	if count < 1 || count > maxMint {
		return nil, nil, fmt.Errorf("%w: %d codes at once", state.ErrInvalid, count)
	}
	for range count {
		code, r, err := money.NewRedeemCode(time.Now(), random, amount, by)
		if err != nil {
			return nil, nil, err
		}
		r.Expires = expires
		codes, records = append(codes, code), append(records, r)
	}
	return codes, records, money.AddRedeemCodes(ctx, c.store, records)
}

// tries bounds the attempts to reach an account whose actor keeps stopping.
const tries = 5

// askAccount runs ask with the account's actor. If that actor is stopping and rejects the message,
// askAccount repeats ask with another one.
func (c *Client) askAccount(ctx context.Context, account string, ask func(*actor.PID) error) error {
	for try := 1; ; try++ {
		pid, err := c.findOrSpawn(ctx, account)
		if err != nil {
			return err
		}
		if err = ask(pid); err == nil {
			return nil
		}
		var rejected *kit.Rejected
		if !errors.As(err, &rejected) {
			return err
		}
		if rejected.Reason == kit.ReasonFailed || try == tries {
			return fmt.Errorf("%w: %w", state.ErrUnavailable, err)
		}
		c.removeActor(account, pid)
	}
}

// findOrSpawn returns the account's actor and starts it if necessary.
func (c *Client) findOrSpawn(ctx context.Context, account string) (*actor.PID, error) {
	if pid := c.actorOf(account); pid != nil {
		return pid, nil
	}
	pid, err := kit.Ask(ctx, c.system, c.parent, &spawning{account: account})
	var rejected *kit.Rejected
	if errors.As(err, &rejected) {
		return nil, fmt.Errorf("%w: %w", state.ErrUnavailable, err)
	}
	return pid, err
}

// actorOf returns the account's actor, or nil if it has none.
func (c *Client) actorOf(account string) *actor.PID {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.accounts[account]
}

// removeActor removes an actor from the map, so that later callers start another one.
func (c *Client) removeActor(account string, pid *actor.PID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.accounts[account]; have != nil && have.Equal(pid) {
		delete(c.accounts, account)
	}
}

// parent spawns the accounts' actors and supervises them.
type parent struct{ client *Client }

// spawning asks the parent for an account's actor.
type spawning struct {
	kit.Reply[*actor.PID]
	account string
}

// Receive implements actor.Actor. It starts the actor of an account, unless the account has one,
// and replies with its PID.
func (p *parent) Receive(ctx actor.Context) {
	c := p.client
	if m, ok := ctx.Message().(*recalling); ok {
		p.recall(ctx, m)
		return
	}
	m, ok := ctx.Message().(*spawning)
	if !ok {
		return
	}
	if pid := c.actorOf(m.account); pid != nil {
		m.Resolve(pid, nil) // another caller has asked first
		return
	}
	m.Resolve(p.spawn(ctx, m.account))
}

// spawn starts the actor of an account.
func (p *parent) spawn(ctx actor.Context, name string) (*actor.PID, error) {
	c := p.client
	props := c.system.Props("account", func() actor.Actor { return &account{client: c, name: name} },
		kit.CountedByKind(), kit.Inline())
	pid, err := c.system.SpawnChild(ctx, props, "account")
	if err == nil {
		c.mu.Lock()
		c.accounts[name] = pid
		c.mu.Unlock()
	}
	return pid, err
}

// recall passes a recall on to the actor of the account. An actor that begins finds the allowances that an earlier one
// has left, and returns them by itself.
func (p *parent) recall(ctx actor.Context, m *recalling) {
	if pid := p.client.actorOf(m.account); pid != nil {
		p.client.system.Send(pid, m)
		return
	}
	if _, err := p.spawn(ctx, m.account); err != nil {
		p.client.system.Logger().Error("allowances are not returned", "account", m.account, "cause", err)
	}
}

// refusal maps an error as Refusal does, but keeps the errors of a context that has ended.
func refusal(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return Refusal(err)
}

// overBudget returns the message for a client whose request a budget does not cover.
func overBudget(e *budget.Error) string {
	what := map[budget.ScopeKind]string{budget.KeyScope: "API key", budget.UserScope: "user",
		budget.GroupScope: "group"}[e.Scope.Kind]
	span := map[budget.Window]string{budget.WindowDay: " a day", budget.WindowMonth: " a month"}[e.Budget.Window]
	return fmt.Sprintf(
		"the %s's budget of %s%s does not cover this request, %s of it is left: ask for less, or have the budget raised",
		what,
		dollars(e.Budget.Amount),
		span,
		dollars(e.Left),
	)
}

// dollars formats micro-dollars.
func dollars(amount int64) string {
	const micro = 1_000_000
	text := strings.TrimRight(fmt.Sprintf("%06d", amount%micro), "0")
	for len(text) < 2 {
		text += "0"
	}
	return fmt.Sprintf("$%d.%s", amount/micro, text)
}

// Refusal returns the error that is sent to a client of the gateway for an error of the
// ledger.
func Refusal(err error) *dialogue.Error {
	var known *dialogue.Error
	var budget *budget.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &budget):
		return dialogue.InsufficientQuota(overBudget(budget), err)
	case errors.Is(err, money.ErrInsufficient):
		return dialogue.InsufficientQuota(
			"the account's balance does not cover this request: top it up, or ask for less",
			err,
		)
	}
	return dialogue.StorageUnavailable("keep accounts", err)
}
