package ledger

import (
	"context"
	"fmt"

	"stagedoor/state"
	"stagedoor/state/money"
)

// Payment adds money to an account or takes it out.
type Payment struct {
	Account string
	Amount  int64 // micro-dollars; a negative amount is taken out
	Reason  string
	// Once is an idempotency key that the payer chose: a payment is made only once under it.
	// If it is empty, the payment is made each time.
	Once string
}

// Pay makes a payment and returns when it is durable. again is set if the payment had been
// made before under the same idempotency key. Pay fails with money.ErrInsufficient if it
// would take money that is spent or held, and with money.ErrReused if the key was used for
// another amount.
func (c *Client) Pay(ctx context.Context, p Payment) (again bool, err error) {
	if p.Amount == 0 {
		return false, fmt.Errorf("%w: a payment of nothing", state.ErrInvalid)
	}
	// The journal checks this again. The check here covers payments that are refused before
	// they reach the journal.
	if made, ok := money.FindPayment(c.store.View(), p.Account, p.Once); ok {
		if made.Amount != p.Amount {
			return false, money.ErrReused
		}
		return true, nil
	}
	if p.Amount < 0 {
		return false, c.adjust(ctx, p.Account, p.Amount, p.Reason, p.Once)
	}
	_, results, err := money.CommitPostings(ctx, c.store,
		p.Account,
		[]money.Posting{{Kind: money.Credit, Amount: p.Amount, Reason: p.Reason, Once: p.Once}},
	)
	if err != nil {
		return false, err
	}
	return false, results[0].Err
}
