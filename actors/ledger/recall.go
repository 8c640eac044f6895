package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/money"
)

const (
	// settleTime is the time in which the settlement of another process, or what it returns of an allowance, is mostly
	// in the journal.
	settleTime = 100 * time.Millisecond
	// shortTries bounds how often a request is decided that is refused for want of money.
	shortTries = 4
	// maxRecall bounds the allowances of one command that recalls them.
	maxRecall = 256
)

// shortOf returns the scope whose money an error says is too little, that of a user for an account's.
func shortOf(err error) (scope budget.Scope, short bool) {
	if over, ok := errors.AsType[*budget.Error](err); ok {
		return over.Scope, true
	}
	return budget.Scope{Kind: budget.UserScope}, errors.Is(err, money.ErrInsufficient)
}

// retryShort calls try again where other processes change the account and it was refused for want of money: while
// allowances have some of it, which it recalls, and once more if settling is set, because a settlement may be on its
// way.
func (c *Client) retryShort(ctx context.Context, account string, settling bool, try func() error) error {
	err := try()
	for n := 1; n < shortTries && c.store.Several(); n++ {
		scope, short := shortOf(err)
		if !short || !c.recall(ctx, account, scope) && !(settling && n == 1) {
			break
		}
		select {
		case <-time.After(settleTime):
			err = try()
		case <-ctx.Done():
			return err
		}
	}
	return err
}

// recall asks for the allowances of an account or a group, and reports whether there are any. A group can have an
// allowance for each key of thousands of users, so they are divided into commands of which none makes other changes
// wait for long. If the journal cannot be written, that is found out by the caller's next try.
func (c *Client) recall(ctx context.Context, account string, scope budget.Scope) bool {
	view := c.store.View()
	all := money.Recallable(view, account, scope)
	if len(all) == 0 {
		return false
	}
	due := slices.DeleteFunc(all, func(a money.Allowance) bool { return !a.RecallDue(view.Now()) })
	for part := range slices.Chunk(due, maxRecall) {
		if state.Run(ctx, c.store, func(tx *state.Tx) error { return money.Recall(tx, part) }) != nil {
			break
		}
	}
	return true
}

// adjust asks the actor of an account to correct its credits, and returns when that is durable. once is as in Payment.
func (c *Client) adjust(ctx context.Context, account string, amount int64, reason, once string) error {
	return c.retryShort(ctx, account, false, func() error {
		return c.askAccount(ctx, account, func(pid *actor.PID) error {
			m := &adjusting{amount: amount, reason: reason, once: once, by: state.ActorOf(ctx)}
			_, err := kit.Ask(ctx, c.system, pid, m)
			return err
		})
	})
}
