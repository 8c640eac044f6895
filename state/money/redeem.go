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

// ErrRedeemed: the redeem code was used before.
var ErrRedeemed = errors.New("the code was used already")

// RedeemCode is money that can be claimed once with the code (decisions,
// Top-up). The code itself was shown once and is nowhere.
type RedeemCode struct {
	ID       string     `json:"id"`
	Hash     state.Hash `json:"hash"`
	Hint     string     `json:"hint"`   // its last characters, for lists
	Amount   int64      `json:"amount"` // micro-dollars
	MintedBy string     `json:"minted_by,omitempty"`
	Created  time.Time  `json:"created"`
	Expires  time.Time  `json:"expires,omitzero"`  // zero: never
	UsedBy   string     `json:"used_by,omitempty"` // the account
	Used     time.Time  `json:"used,omitzero"`     // zero: it is not
	// Cancelled is when an operator took it back; zero: it was not.
	Cancelled time.Time `json:"cancelled,omitzero"`
}

// The states of a code.
const (
	RedeemOpen      = "open"
	RedeemUsed      = "used"
	RedeemExpired   = "expired"
	RedeemCancelled = "cancelled"
)

// RedeemStates are all of them.
func RedeemStates() []string {
	return []string{RedeemOpen, RedeemUsed, RedeemExpired, RedeemCancelled}
}

// State is what has become of the code by now.
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

// RedeemedFor is how long a code that is good for nothing any more is remembered:
// operators see what became of it, and who tries a used one again hears that it was.
const RedeemedFor = 90 * 24 * time.Hour

// forgotten is when a code may be swept; zero: never.
func (c *RedeemCode) forgotten() time.Time {
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

var redeemCodes = state.Table[RedeemCode]{
	Name:    journal.Redeem,
	ID:      func(c *RedeemCode) string { return c.ID },
	Expires: (*RedeemCode).forgotten,
	Indexes: map[string]state.Index[RedeemCode]{
		byCode: {Unique: true, Key: func(c *RedeemCode) []byte { return c.Hash[:] }},
	},
}

const (
	codeBytes = 15 // 120 bits: 24 characters
	codeGroup = 4
	codeHint  = 4
)

// Letters and digits that are not mistaken for each other when typed.
var codeAlphabet = base32.NewEncoding("ABCDEFGHJKMNPQRSTVWXYZ0123456789").WithPadding(base32.NoPadding)

// NewRedeemCode makes a code of six groups of four, to be typed by hand.
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

// HashRedeemCode is the hash under which a code is found, however it was typed.
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

// AddRedeemCodes keeps new codes, all of them or none.
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

func (c *RedeemCode) check() error {
	if err := state.CheckID(c.ID); err != nil {
		return err
	}
	if c.Hash == (state.Hash{}) || c.Amount <= 0 || c.Amount > budget.MaxCredits || !c.Used.IsZero() {
		return fmt.Errorf("%w: redeem code %s of %d", state.ErrInvalid, c.ID, c.Amount)
	}
	return nil
}

// Redeem credits an account with a code's amount and spends the code, in one
// command: it is ErrNotFound for a code that is unknown, cancelled or expired, and
// ErrRedeemed for one that was used, by whomever.
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

// redeem is State.Redeem inside a command.
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

// CancelRedeemCode takes a code back. The error is ErrRedeemed if the code was used before.
// Doing it again changes nothing.
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

// ListRedeemCodes lists codes in the order in which they were made.
func ListRedeemCodes(v state.View) []RedeemCode { return redeemCodes.List(v, state.ByID, nil) }
