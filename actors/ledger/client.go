package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// End reasons that the ledger gives itself.
const (
	ReasonCrash = "crash"       // the process ended during the request
	ReasonLeft  = "client_left" // before its hold was granted
)

// Client is the ledger as the rest of the program sees it. Any goroutine may use
// it.
type Client struct {
	system *kit.System
	store  *state.State
	parent *actor.PID

	mu       sync.RWMutex
	accounts map[string]*actor.PID

	shared    shared
	uncounted uncounted
	counts    counts
}

// New starts the ledger. Recover comes first.
func New(system *kit.System, store *state.State) (*Client, error) {
	c := &Client{system: system, store: store, accounts: make(map[string]*actor.PID)}
	c.shared.load(store.Holds(""), store)
	props := system.Props("ledger", func() actor.Actor { return &parent{client: c} }, kit.WithSupervisor(resume(system)))
	var err error
	if c.parent, err = system.SpawnUnique(props, "ledger"); err != nil {
		return nil, err
	}
	c.uncounted.client, c.uncounted.rows = c, make(map[usageName]*state.UsageRow)
	c.uncounted.pid, err = system.SpawnUnique(system.Props("usage", func() actor.Actor { return &counter{client: c} }), "usage")
	return c, err
}

// resume lets an account whose message panicked go on: its core is the only one
// that knows the holds that are not journaled yet.
func resume(system *kit.System) *kit.Backoff {
	return &kit.Backoff{
		Decide: func(any) actor.Directive { return actor.ResumeDirective },
		Report: func(f kit.Failure) {
			system.Logger().Error("account actor failed", "actor", f.Child, "reason", f.Reason)
		},
	}
}

// Ask is what a request says about itself before it costs anything.
type Ask struct {
	Account   string
	RequestID string
	// Amount is the most it is expected to cost, in micro-dollars.
	Amount int64
	// Durable: wait until the hold would survive a crash. It is for work that
	// must not be done twice or unpaid: images and videos.
	Durable bool
	// Key is the id of the key that asks. What it spends and holds together stays
	// in its budget, as that is at the moment.
	Key string
	// Model and Provider are for the receipt.
	Model, Provider string
}

func (a *Ask) receipt() state.Receipt {
	return state.Receipt{Request: a.RequestID, Key: a.Key, Model: a.Model, Provider: a.Provider}
}

// Settlement is what a request did cost.
type Settlement struct {
	Amount int64
	// Reason is how it ended.
	Reason string
	// Receipt tells the rest: model, provider, attempts, usage, prices, flags. It
	// may be nil, and is the ledger's from here on.
	Receipt *state.Receipt
}

// Balance is an account at a moment. Held counts what is not journaled, too.
type Balance struct{ Credits, Spent, Held int64 }

// Available is what can be held.
func (b Balance) Available() int64 { return b.Credits - b.Spent - b.Held }

// Hold is money kept for one request. It is ended exactly once, by the first
// Settle or Release; later ones change nothing and tell what the first did. A
// hold that is never ended is kept until the process ends.
type Hold struct {
	client *Client
	pid    *actor.PID
	hold   *hold
	amount atomic.Int64
	ended  atomic.Bool // has been counted
}

// Amount is what is held.
func (h *Hold) Amount() int64 { return h.amount.Load() }

// Hold keeps ask.Amount of an account. Its error is a *dialogue.Error: 429
// insufficient_quota if the account does not have it (state.ErrInsufficient) or
// the key's budget does not cover it (*state.BudgetError), 503 if the ledger can't be written.
func (c *Client) Hold(ctx context.Context, ask Ask) (*Hold, error) {
	var held *Hold
	err := c.with(ctx, ask.Account, func(pid *actor.PID) error {
		m := &holding{ask: ask}
		granted, err := kit.Ask(ctx, c.system, pid, m)
		if err != nil {
			if ctx.Err() != nil {
				c.system.Send(pid, &leaving{m})
			}
			return err
		}
		held = &Hold{client: c, pid: pid, hold: granted}
		held.amount.Store(ask.Amount)
		return nil
	})
	c.counts.asked(err)
	return held, refusal(err)
}

// Resume returns the hold of a request that began in another life of the process
// and that Recover was told to keep.
func (c *Client) Resume(ctx context.Context, account, requestID string) (*Hold, error) {
	var held *Hold
	err := c.with(ctx, account, func(pid *actor.PID) error {
		found, err := kit.Ask(ctx, c.system, pid, &resuming{request: requestID})
		if err != nil {
			return err
		}
		held = &Hold{client: c, pid: pid, hold: found.hold}
		held.amount.Store(found.amount)
		return nil
	})
	return held, err
}

// Extend adds to what is held, or fails as Client.Hold does and changes nothing.
func (h *Hold) Extend(ctx context.Context, amount int64) error {
	if _, err := kit.Ask(ctx, h.client.system, h.pid, &extending{hold: h.hold, amount: amount}); err != nil {
		return refusal(err)
	}
	h.amount.Add(amount)
	return nil
}

// Room is how much could be added at the moment: what the account has left, and
// the key's budget.
func (h *Hold) Room(ctx context.Context) (int64, error) {
	return kit.Ask(ctx, h.client.system, h.pid, &roomAsk{hold: h.hold})
}

// Progress notes what the request has cost so far: what it is settled at if the
// process is killed. It does not wait. Every 10 s or 4,000 tokens is enough.
func (h *Hold) Progress(amount int64) {
	h.client.system.Send(h.pid, &progressing{h.hold, amount})
}

// Settle ends the hold with a charge and returns when that is durable. A charge above
// the hold and above what the account has besides leaves a debt. If it fails the hold is open still, to be settled again or released;
// if ctx ends it is settled all the same.
func (h *Hold) Settle(ctx context.Context, s Settlement) error {
	_, err := kit.Ask(ctx, h.client.system, h.pid, &settling{hold: h.hold, settlement: s})
	h.settled(s.Amount, err)
	return refusal(err)
}

// SettleWithin is Settle for who has left and can't call it off: it waits for d.
func (h *Hold) SettleWithin(d time.Duration, s Settlement) error {
	_, err := kit.AskWithin(d, h.client.system, h.pid, &settling{hold: h.hold, settlement: s})
	h.settled(s.Amount, err)
	return refusal(err)
}

// Release ends the hold without a charge. It does not wait: the money is free at
// once, and a crash would release it, too. The receipt is as in Settlement.
func (h *Hold) Release(reason string, receipt *state.Receipt) {
	h.client.system.Send(h.pid, &releasing{h.hold, reason, receipt})
	h.released()
}

// Balance tells what an account has. One whose name was never heard has nothing.
func (c *Client) Balance(ctx context.Context, account string) (Balance, error) {
	if c.find(account) == nil {
		a := c.store.Account(account)
		return Balance{Credits: a.Credits, Spent: a.Spent, Held: a.Held}, nil
	}
	var b Balance
	err := c.with(ctx, account, func(pid *actor.PID) (err error) {
		b, err = kit.Ask(ctx, c.system, pid, &balanceAsk{})
		return err
	})
	return b, err
}

// Moving tells whether a request of an account holds money, or did a moment ago,
// and has no receipt yet for that.
func (c *Client) Moving(ctx context.Context, account, request string) (bool, error) {
	pid := c.find(account)
	if pid == nil {
		return false, nil
	}
	moving, err := kit.Ask(ctx, c.system, pid, &movingAsk{request: request})
	var stopped *kit.Rejected
	if errors.As(err, &stopped) {
		return false, nil // it stopped just now: nothing was in motion
	}
	return moving, err
}

// Credit puts money in and returns when that is durable.
func (c *Client) Credit(ctx context.Context, account string, amount int64, reason string) error {
	if amount <= 0 {
		return fmt.Errorf("%w: a credit of %d", state.ErrInvalid, amount)
	}
	_, results, err := c.store.Post(ctx, account, []state.Posting{{Kind: state.Credit, Amount: amount, Reason: reason}})
	if err != nil {
		return err
	}
	return results[0].Err
}

// Adjust corrects the credits, up or down, and returns when that is durable.
// Nothing can be taken that is spent or held: state.ErrInsufficient.
func (c *Client) Adjust(ctx context.Context, account string, amount int64, reason string) error {
	return c.with(ctx, account, func(pid *actor.PID) error {
		_, err := kit.Ask(ctx, c.system, pid, &adjusting{amount: amount, reason: reason})
		return err
	})
}

// Redeem credits an account with what a code is worth, once: state.ErrNotFound,
// state.ErrRedeemed.
func (c *Client) Redeem(ctx context.Context, account, code string) (amount int64, err error) {
	_, redeemed, err := c.store.Redeem(ctx, account, code)
	return redeemed.Amount, err
}

// maxMint bounds the codes of one command.
const maxMint = 1000

// Mint makes count codes of amount each, to be shown once.
func (c *Client) Mint(ctx context.Context, count int, amount int64, by string, expires time.Time, random io.Reader) (codes []string, records []state.RedeemCode, err error) {
	if count < 1 || count > maxMint {
		return nil, nil, fmt.Errorf("%w: %d codes at once", state.ErrInvalid, count)
	}
	for range count {
		code, r, err := state.NewRedeemCode(time.Now(), random, amount, by)
		if err != nil {
			return nil, nil, err
		}
		r.Expires = expires
		codes, records = append(codes, code), append(records, r)
	}
	return codes, records, c.store.AddRedeemCodes(ctx, records)
}

// tries bounds how often an account is looked for that stops whenever found.
const tries = 5

// with runs ask against the account's actor. One that was just stopping refuses,
// and another is found or spawned.
func (c *Client) with(ctx context.Context, account string, ask func(*actor.PID) error) error {
	for try := 1; ; try++ {
		pid, err := c.reach(ctx, account)
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
		c.forget(account, pid)
	}
}

func (c *Client) reach(ctx context.Context, account string) (*actor.PID, error) {
	if pid := c.find(account); pid != nil {
		return pid, nil
	}
	pid, err := kit.Ask(ctx, c.system, c.parent, &spawning{account: account})
	var rejected *kit.Rejected
	if errors.As(err, &rejected) {
		return nil, fmt.Errorf("%w: %w", state.ErrUnavailable, err)
	}
	return pid, err
}

func (c *Client) find(account string) *actor.PID {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.accounts[account]
}

func (c *Client) forget(account string, pid *actor.PID) {
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

// Receive implements actor.Actor.
func (p *parent) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*spawning)
	if !ok {
		return
	}
	c := p.client
	if pid := c.find(m.account); pid != nil {
		m.Resolve(pid, nil) // somebody asked before
		return
	}
	props := c.system.Props("account", func() actor.Actor { return &account{client: c, name: m.account} }, kit.Crowd(), kit.Inline())
	pid, err := c.system.SpawnChild(ctx, props, "account")
	if err == nil {
		c.mu.Lock()
		c.accounts[m.account] = pid
		c.mu.Unlock()
	}
	m.Resolve(pid, err)
}

// refusal keeps what is a *dialogue.Error or nobody's to hear of.
func refusal(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return Refusal(err)
}

// overBudget names the budget to the client.
func overBudget(e *state.BudgetError) string {
	what := map[state.ScopeKind]string{state.KeyScope: "API key", state.UserScope: "user", state.GroupScope: "group"}[e.Scope.Kind]
	span := map[state.Window]string{state.WindowDay: " a day", state.WindowMonth: " a month"}[e.Budget.Window]
	return fmt.Sprintf("the %s's budget of %s%s does not cover this request, %s of it is left: ask for less, or have the budget raised",
		what, dollars(e.Budget.Amount), span, dollars(e.Left))
}

// dollars writes micro-dollars.
func dollars(amount int64) string {
	const micro = 1_000_000
	text := strings.TrimRight(fmt.Sprintf("%06d", amount%micro), "0")
	for len(text) < 2 {
		text += "0"
	}
	return fmt.Sprintf("$%d.%s", amount/micro, text)
}

// Refusal is what a client of the gateway hears of an error of the ledger.
func Refusal(err error) *dialogue.Error {
	var known *dialogue.Error
	var budget *state.BudgetError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &budget):
		return &dialogue.Error{Status: 429, Type: "insufficient_quota", Code: "insufficient_quota", NoRetry: true, Cause: err,
			Message: overBudget(budget)}
	case errors.Is(err, state.ErrInsufficient):
		return &dialogue.Error{Status: 429, Type: "insufficient_quota", Code: "insufficient_quota", NoRetry: true, Cause: err,
			Message: "the account's balance does not cover this request: top it up, or ask for less"}
	}
	return &dialogue.Error{Status: 503, Type: dialogue.TypeAPI, Code: "storage_unavailable", RetryAfter: 5 * time.Second, Cause: err,
		Message: "the gateway cannot keep accounts at the moment, try again later"}
}
