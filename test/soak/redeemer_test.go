package soak

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// voucher is a redeem code in the hands of a user.
type voucher struct {
	code    string
	used    verdict // refused: not sent yet
	counted bool
}

// redeemer tops up an account on the gateway's own page, to which the grantee's app sends its user.
type redeemer struct {
	*grantee
	vouchers []*voucher
	next     int
	seen     int // index of the first code that no check has seen
}

const redeemPace = 100 * time.Millisecond

// step redeems the next code on the top-up page.
func (r *redeemer) step(ctx context.Context) error {
	if r.next == len(r.vouchers) {
		return pause(ctx, redeemPace)
	}
	v := r.vouchers[r.next]
	r.next++
	if err := r.redeem(ctx, v, false); err != nil {
		return err
	}
	return pause(ctx, time.Duration(r.random.Int64N(int64(redeemPace))))
}

// redeem submits a code on the top-up page. sure says that the code was used already, so that it must be refused. A
// code whose answer was lost may be accepted or refused, and the answer decides what happened.
func (r *redeemer) redeem(ctx context.Context, v *voucher, sure bool) error {
	action, fields, err := r.page(ctx)
	if err != nil || action == "" {
		return err
	}
	doubtful := v.used == unknown
	if v.used != accepted {
		v.used = unknown
	}
	fields.Set("code", v.code)
	a, err := r.soak.gateway.postForm(ctx, r.browser.http, action, fields)
	if err != nil {
		return err
	}
	done := a.status == http.StatusUnprocessableEntity && strings.Contains(string(a.body), "used already")
	if doubtful {
		r.soak.settled(done)
	}
	switch {
	case a.status == http.StatusSeeOther && !sure:
		v.used = accepted
	case done && (sure || doubtful):
		v.used = accepted
	default:
		r.soak.wrong("a redeem code (used before: %v, perhaps: %v): %s", sure, doubtful, &a)
	}
	return nil
}

// page opens the top-up page as an app's user does; "" if something was wrong.
func (r *redeemer) page(ctx context.Context) (action string, fields url.Values, err error) {
	if len(r.live) == 0 {
		if err := r.begin(ctx); err != nil {
			return "", nil, err
		}
	}
	one := r.live[0]
	if err := r.settle(ctx, one); err != nil || one.dead {
		return "", nil, err
	}
	a, err := r.soak.gateway.get(ctx, "/api/oauth2/topup", one.access)
	if err != nil {
		return "", nil, err
	}
	a, err = r.browser.open(ctx, gjson.GetBytes(a.body, "topup_url").String())
	if err == nil && a.header.Get("Location") != "" {
		a, err = r.browser.open(ctx, r.soak.gateway.url+a.header.Get("Location"))
	}
	if err != nil {
		return "", nil, err
	}
	action, fields, ok := form(a.body)
	if !ok {
		r.soak.wrong("the top-up page: %s", &a)
	}
	return action, fields, nil
}

// check redeems the codes that no check has seen once more. A code that was acknowledged must be refused as used.
func (r *redeemer) check(ctx context.Context, all bool) error {
	if err := r.grantee.check(ctx, all); err != nil {
		return err
	}
	for _, v := range r.vouchers[r.seen:r.next] {
		known := v.used == accepted
		if err := r.redeem(ctx, v, known); err != nil {
			return err
		}
		if known && !v.counted {
			v.counted = true
			r.soak.found("redeem codes")
		}
	}
	r.seen = r.next
	return nil
}
