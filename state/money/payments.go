package money

import (
	"errors"
	"fmt"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// ErrReused: the key of a payment was used for another one before.
var ErrReused = errors.New("the idempotency key was used for another payment")

// Payment remembers a credit or adjustment under a key that its client chose, so
// that one that is sent again, because its answer got lost, is not made twice.
//
// Payments never expire. A wall clock that leaps forward and back would otherwise
// remove the key of a recent payment, and the same request would be credited twice.
// Payments are few compared with requests, so keeping their keys is cheap.
type Payment struct {
	Account  string    `json:"account"`
	Once     string    `json:"once"` // the client's key
	Amount   int64     `json:"amount"`
	Sequence uint64    `json:"sequence"` // of its ledger entry
	At       time.Time `json:"at"`
}

var payments = state.Table[Payment]{
	Name: journal.Payment,
	ID:   func(p *Payment) string { return paymentID(p.Account, p.Once) },
}

func paymentID(account, once string) string { return account + "\x00" + once }

// FindPayment finds a payment of an account by the key that its client chose.
func FindPayment(v state.View, account, once string) (Payment, bool) {
	return payments.Get(v, paymentID(account, once)).Record()
}

// once enters a credit or adjustment unless it was entered under its key before.
// Then it is the sequence of that one, or ErrReused if that was another.
func (p *poster) once(what *Posting) (uint64, error) {
	if err := state.CheckID(what.Once); err != nil {
		return 0, err
	}
	if made, ok := FindPayment(p.tx.View(), p.account.ID, what.Once); ok {
		if made.Amount != what.Amount {
			return 0, fmt.Errorf("%q paid %d: %w", what.Once, made.Amount, ErrReused)
		}
		return made.Sequence, nil
	}
	sequence, err := p.move(what)
	if err != nil {
		return 0, err
	}
	made := Payment{Account: p.account.ID, Once: what.Once, Amount: what.Amount, Sequence: sequence, At: p.tx.Now()}
	if err := payments.Put(p.tx, made); err != nil {
		p.broken = err
	}
	return sequence, nil
}
