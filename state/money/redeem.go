package money

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// ErrRedeemed says that the redeem code was used before.
var ErrRedeemed = errors.New("the code was used already")

// RedeemCode is an amount that can be claimed once with a code. The code itself is shown once and
// not stored.
type RedeemCode struct {
	ID       string     `json:"id"`
	Hash     state.Hash `json:"hash"`
	Hint     string     `json:"hint"`   // last characters of the code, for lists
	Amount   int64      `json:"amount"` // micro-dollars
	MintedBy string     `json:"minted_by,omitempty"`
	Created  time.Time  `json:"created"`
	Expires  time.Time  `json:"expires,omitzero"`  // zero: never
	UsedBy   string     `json:"used_by,omitempty"` // account that was credited
	Used     time.Time  `json:"used,omitzero"`     // zero if it was not used
	// Cancelled is the time at which an operator cancelled the code, or zero.
	Cancelled time.Time `json:"cancelled,omitzero"`
}

// The results of RedeemCode.State.
const (
	RedeemOpen      = "open"
	RedeemUsed      = "used"
	RedeemExpired   = "expired"
	RedeemCancelled = "cancelled"
)

// RedeemStates returns all states of a code.
func RedeemStates() []string {
	return []string{RedeemOpen, RedeemUsed, RedeemExpired, RedeemCancelled}
}

// State returns the state of the code at now.
func (c *RedeemCode) State(now time.Time) string {
	switch {
	case !c.Used.IsZero():
		return RedeemUsed
	case !c.Cancelled.IsZero():
		return RedeemCancelled
	case !c.Expires.IsZero() && !now.Before(c.Expires):
		return RedeemExpired
	}
	return RedeemOpen
}

// RedeemedFor is the time for which a code is kept after it was used or cancelled or has expired. Until then
// operators can see what happened to it, and using it again is reported as ErrRedeemed.
const RedeemedFor = 90 * 24 * time.Hour

// sweepTime returns when the code may be removed; zero means never.
func (c *RedeemCode) sweepTime() time.Time {
	switch {
	case !c.Used.IsZero():
		return c.Used.Add(RedeemedFor)
	case !c.Cancelled.IsZero():
		return c.Cancelled.Add(RedeemedFor)
	case !c.Expires.IsZero():
		return c.Expires.Add(RedeemedFor)
	}
	return time.Time{}
}

const byCode = "code"

// redeemCodes holds redeem codes by id, with hashes in place of the codes. byCode finds the one that a user has typed
// in.
var redeemCodes = state.Table[RedeemCode]{
	Name:    journal.Redeem,
	ID:      func(c *RedeemCode) string { return c.ID },
	Expires: (*RedeemCode).sweepTime,
	Audit: &state.Audit[RedeemCode]{Kind: "code",
		Describe: func(_ state.View, c *RedeemCode) (state.Target, state.Fields) {
			return state.Target{}, state.Fields{"amount": c.Amount, "minted_by": c.MintedBy, "expires": c.Expires,
				"used_by": c.UsedBy, "used": c.Used, "cancelled": c.Cancelled}
		}},
	Indexes: map[string]state.Index[RedeemCode]{
		byCode: {Unique: true, Key: func(c *RedeemCode) []byte { return c.Hash[:] }},
	},
}

const (
	codeBytes = 15 // 120 bits: 24 characters
	codeGroup = 4
	codeHint  = 4
)

// codeAlphabet leaves out letters that look like digits.
var codeAlphabet = base32.NewEncoding("ABCDEFGHJKMNPQRSTVWXYZ0123456789").WithPadding(base32.NoPadding)

// NewRedeemCode returns a new code of six groups of four characters, and its record without the
// code.
func NewRedeemCode(
	now time.Time,
	random io.Reader,
	amount int64,
	mintedBy string,
) (code string, c RedeemCode, err error) {
	id, err := state.NewID("code_", now, random)
	if err != nil {
		return "", RedeemCode{}, err
	}
	var bits [codeBytes]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", RedeemCode{}, fmt.Errorf("make redeem code: %w", err)
	}
	digits := codeAlphabet.EncodeToString(bits[:])
	var groups []string
	for at := 0; at < len(digits); at += codeGroup {
		groups = append(groups, digits[at:at+codeGroup])
	}
	code = strings.Join(groups, "-")
	return code, RedeemCode{
		ID:       id,
		Hash:     HashRedeemCode(code),
		Hint:     digits[len(digits)-codeHint:],
		Amount:   amount,
		MintedBy: mintedBy,
		Created:  now,
	}, nil
}

// HashRedeemCode returns the hash of a code. It ignores case and separators and accepts O for 0 and
// I or L for 1, so that a code typed by hand is found.
func HashRedeemCode(code string) state.Hash {
	var b strings.Builder
	for _, c := range strings.ToUpper(code) {
		switch {
		case c == 'O':
			b.WriteRune('0') // not in the alphabet
		case c == 'I' || c == 'L':
			b.WriteRune('1')
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			b.WriteRune(c)
		}
	}
	return state.HashSecret(b.String())
}

// AddRedeemCodes stores new codes, all or none.
func AddRedeemCodes(ctx context.Context, s *state.State, codes []RedeemCode) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		for _, c := range codes {
			if err := c.check(); err != nil {
				return err
			}
			if redeemCodes.Get(tx.View(), c.ID) != nil || redeemCodes.First(tx.View(), byCode, c.Hash[:]) != nil {
				return fmt.Errorf("redeem code %s: %w", c.ID, state.ErrExists)
			}
			if err := redeemCodes.Put(tx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// check returns an error unless the code can be stored.
func (c *RedeemCode) check() error {
	if err := state.CheckID(c.ID); err != nil {
		return err
	}
	if c.Hash == (state.Hash{}) || c.Amount <= 0 || c.Amount > budget.MaxCredits || !c.Used.IsZero() {
		return fmt.Errorf("%w: redeem code %s of %d", state.ErrInvalid, c.ID, c.Amount)
	}
	return nil
}

// Redeem marks a code as used and credits its amount to an account, in one command. It returns
// state.ErrNotFound for a code that is unknown, cancelled or expired, and ErrRedeemed for one that
// any account has used.
func Redeem(ctx context.Context, s *state.State, account, code string) (Account, RedeemCode, error) {
	hash := HashRedeemCode(code)
	var c RedeemCode
	a, err := state.Do(ctx, s, func(tx *state.Tx) (a Account, err error) {
		a, c, err = redeem(tx, account, hash)
		return a, err
	})
	if err != nil {
		return Account{}, RedeemCode{}, err
	}
	return a, c, nil
}

// redeem is Redeem as part of a command.
func redeem(tx *state.Tx, account string, hash state.Hash) (Account, RedeemCode, error) {
	r := redeemCodes.First(tx.View(), byCode, hash[:])
	if r == nil || !r.Rec.Cancelled.IsZero() || (!r.Rec.Expires.IsZero() && !tx.Now().Before(r.Rec.Expires)) {
		return Account{}, RedeemCode{}, fmt.Errorf("redeem code: %w", state.ErrNotFound)
	}
	c := r.Rec
	if !c.Used.IsZero() {
		return Account{}, RedeemCode{}, fmt.Errorf("redeem code %s: %w", c.ID, ErrRedeemed)
	}
	a, posted, err := Post(tx, account, []Posting{{Kind: Credit, Amount: c.Amount, Reason: "redeem " + c.ID}})
	if err == nil {
		err = posted[0].Err
	}
	if err != nil {
		return Account{}, RedeemCode{}, err
	}
	c.Used, c.UsedBy = tx.Now(), account
	return a, c, redeemCodes.Put(tx, c)
}

// CancelRedeemCode cancels a code. It returns ErrRedeemed if the code was used. Cancelling it again
// changes nothing.
func CancelRedeemCode(ctx context.Context, s *state.State, id string) (RedeemCode, error) {
	return state.Do(ctx, s, func(tx *state.Tx) (RedeemCode, error) {
		r := redeemCodes.Get(tx.View(), id)
		if r == nil {
			return RedeemCode{}, fmt.Errorf("redeem code %s: %w", id, state.ErrNotFound)
		}
		c := r.Rec
		switch {
		case !c.Used.IsZero():
			return RedeemCode{}, fmt.Errorf("redeem code %s: %w", id, ErrRedeemed)
		case !c.Cancelled.IsZero():
			return c, nil
		}
		c.Cancelled = tx.Now()
		return c, redeemCodes.Put(tx, c)
	})
}

// ListRedeemCodes returns all codes in order of creation.
func ListRedeemCodes(v state.View) []RedeemCode { return redeemCodes.List(v, state.ByID, nil) }
