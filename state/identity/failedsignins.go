package identity

import (
	"context"
	"math/bits"
	"sync/atomic"
	"time"

	"stagedoor/state"
)

// FailureKind is a kind of failed sign-in. Each is counted alone, so that strangers, who can guess passwords and tokens
// as often as they like, do not use up the records of wrong codes, for which a guesser knows the password already.
type FailureKind int

// The values of FailureKind.
const (
	WrongPassword FailureKind = iota
	WrongCode
	WrongAdminToken
	RefusedIdentity // a person whom a provider authenticated may not sign in here
	RefusedPasskey  // a device that has signed the challenge is a copy, or its user is disabled
	failureKinds
)

// failedSignIns counts the failed sign-ins of one kind in the current hour: the hour since 1970 in the upper half, the
// count in the lower one.
type failedSignIns struct{ atomic.Uint64 }

// eachFailure is the number of failed sign-ins of a kind in an hour that are recorded one by one.
const eachFailure = 32

// next counts a failure and reports whether it is recorded. Beyond the first eachFailure of an hour, only a failure
// whose count is a power of two is recorded. Strangers can therefore not fill the audit log, and it still shows about
// how many failures there were.
func (f *failedSignIns) next(now time.Time) (n uint32, recorded bool) {
	hour := uint64(now.Unix()/3600) << 32
	for {
		before := f.Load()
		after := hour + 1
		if before>>32 == hour>>32 {
			after = before + 1
		}
		if f.CompareAndSwap(before, after) {
			n = uint32(after)
			return n, n <= eachFailure || bits.OnesCount32(n) == 1
		}
	}
}

// RecordFailedSignIn writes a failed sign-in to the audit log, or only counts it if there were many of its kind in this
// hour. Each node counts for itself.
func RecordFailedSignIn(ctx context.Context, s *state.State, kind FailureKind, target state.Target,
	reason string) error {
	n, recorded := AccessOf(s).failed[kind].next(s.Now())
	if !recorded {
		return nil
	}
	return s.RecordAudit(context.WithoutCancel(ctx), state.AuditEvent{Action: "sign_in.fail", Target: target,
		After: state.Fields{"reason": reason, "failures_this_hour": n}})
}
