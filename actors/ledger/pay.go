package ledger

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/state"
)

// Payment puts money in, or takes it out.
type Payment struct {
	Account string
	Amount  int64 // micro-dollars; negative: taken out
	Reason  string
	// Once is a key that the payer chose: a payment that was made under it is not
	// made again. "": each time.
	Once string
}

// Pay makes a payment and returns when it is durable. again tells that it had
// been made before. Nothing can be taken that is spent or held:
// state.ErrInsufficient. Another payment under the same key is state.ErrReused.
func (c *Client) Pay(ctx context.Context, p Payment) (again bool, err error) {
	if p.Amount == 0 {
		return false, fmt.Errorf("%w: a payment of nothing", state.ErrInvalid)
	}
	// The journal looks again: this is for those that it would not be asked about.
	if made, ok := c.store.View().Payment(p.Account, p.Once); ok {
		if made.Amount != p.Amount {
			return false, state.ErrReused
		}
		return true, nil
	}
	if p.Amount < 0 {
		return false, c.with(ctx, p.Account, func(pid *actor.PID) error {
			_, err := kit.Ask(ctx, c.system, pid, &adjusting{amount: p.Amount, reason: p.Reason, once: p.Once})
			return err
		})
	}
	_, results, err := c.store.Post(ctx, p.Account, []state.Posting{{Kind: state.Credit, Amount: p.Amount, Reason: p.Reason, Once: p.Once}})
	if err != nil {
		return false, err
	}
	return false, results[0].Err
}
