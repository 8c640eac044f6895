package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/tidwall/gjson"
)

// payment is money that was put on an account under an id of its payer.
type payment struct {
	id      string
	amount  int64
	made    verdict
	counted bool
}

// depositor puts money on an account over the API of administration. It sends a payment whose answer was lost again,
// with the same id, which must not pay twice.
type depositor struct {
	soak     *soak
	account  string
	random   *rand.Rand
	payments []*payment
	fresh    int // index of the first payment that no check has seen
}

const depositPace = 40 * time.Millisecond

// step makes a new payment and waits a moment.
func (b *depositor) step(ctx context.Context) error {
	one := &payment{id: fmt.Sprintf("payment-%d", len(b.payments)), amount: 1 + b.random.Int64N(1000)}
	b.payments = append(b.payments, one)
	if err := b.pay(ctx, one); err != nil {
		return err
	}
	return pause(ctx, time.Duration(b.random.Int64N(int64(depositPace))))
}

// pay sends a payment, perhaps once more. A payment that was acknowledged before must be answered as repeated.
func (b *depositor) pay(ctx context.Context, one *payment) error {
	a, err := b.soak.gateway.administer(ctx, http.MethodPost, "/accounts/"+b.account+"/credits",
		fmt.Sprintf(`{"amount":%d,"id":%q}`, one.amount, one.id))
	if err != nil {
		return err
	}
	repeated := gjson.GetBytes(a.body, "repeated").Bool()
	if a.status != http.StatusOK || (one.made == accepted && !repeated) {
		b.soak.wrong("payment %s (made before: %v): %s", one.id, one.made == accepted, &a)
	}
	one.made = accepted
	return nil
}

// check sends all payments again that no check has seen. An acknowledged one must be answered as repeated, and the
// answer to a doubtful one settles it.
func (b *depositor) check(ctx context.Context, _ bool) error {
	for _, one := range b.payments[b.fresh:] {
		known := one.made == accepted
		if err := b.pay(ctx, one); err != nil {
			return err
		}
		if known && !one.counted {
			one.counted = true
			b.soak.found("payments")
		}
	}
	b.fresh = len(b.payments)
	return nil
}

// paid returns the least and the most that the account received.
func (b *depositor) paid() (least, most int64) {
	for _, one := range b.payments {
		most += one.amount
		if one.made == accepted {
			least += one.amount
		}
	}
	return least, most
}
