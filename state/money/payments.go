package money

import (
	"errors"
	"fmt"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// ErrReused says that the idempotency key was used for a payment of another amount.
var ErrReused = errors.New("the idempotency key was used for another payment")

// Payment records a credit or adjustment under an idempotency key that the client has chosen. If
// the client sends it again because the response was lost, it is not made twice.
//
// Payments never expire. If they did, a clock that leaps forward and back could remove the key of a
// recent payment, and the repeated request would be credited twice. Payments are few compared with
// requests, so keeping their keys is cheap.
type Payment struct {
	Account  string    `json:"account"`
	Once     string    `json:"once"` // idempotency key
	Amount   int64     `json:"amount"`
	Sequence uint64    `json:"sequence"` // of its ledger entry
	At       time.Time `json:"at"`
}

// payments holds the payments that were made under an id of their payer, so that each pays once.
var payments = state.Table[Payment]{
	Name: journal.Payment,
	ID:   func(p *Payment) string { return paymentID(p.Account, p.Once) },
}

// paymentID returns the key of a payment. Two accounts may use the same id of their own.
func paymentID(account, once string) string { return account + "\x00" + once }

// FindPayment returns the payment of an account with this idempotency key.
func FindPayment(v state.View, account, once string) (Payment, bool) {
	return payments.Get(v, paymentID(account, once)).Record()
}

// creditOnce enters a credit or adjustment unless one was entered with the same key. Then it
// returns that one's sequence number, or ErrReused if the amounts differ.
func (p *poster) creditOnce(what *Posting) (uint64, error) {
	if err := state.CheckID(what.Once); err != nil {
		return 0, err
	}
	if made, ok := FindPayment(p.tx.View(), p.account.ID, what.Once); ok {
		if made.Amount != what.Amount {
			return 0, fmt.Errorf("%q paid %d: %w", what.Once, made.Amount, ErrReused)
		}
		return made.Sequence, nil
	}
	sequence, err := p.changeCredits(what)
	if err != nil {
		return 0, err
	}
	made := Payment{Account: p.account.ID, Once: what.Once, Amount: what.Amount, Sequence: sequence, At: p.tx.Now()}
	if err := payments.Put(p.tx, made); err != nil {
		p.broken = err
	}
	return sequence, nil
}
