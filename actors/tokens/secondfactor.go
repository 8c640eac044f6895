package tokens

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// Codes are those of RFC 6238 with the values that every authenticator app takes: SHA-1, six digits, 30 seconds.
const (
	codeDigits    = 6
	codeStep      = 30 * time.Second
	secretBytes   = 20
	recoveryCodes = 10
	recoveryBytes = 10 // of one recovery code: 80 bits, so that its hash needs no salt
)

// codeSlack is the number of steps that a clock may be wrong by, in both directions.
const codeSlack = 1

// Halfway is a login whose password was right and whose code is missing. The caller seals it for the browser that sent
// the password, for a few minutes.
// It is kept by the browser and not here, so that many logins that are never finished fill no
// table.
type Halfway struct {
	User  int64 `json:"u"`
	Epoch int64 `json:"e"` // a change of the password ends it
	// Device is that of the Login, and Issuer the OpenID provider, or "".
	Device string `json:"d,omitempty"`
	Issuer string `json:"i,omitempty"`
}

// CodeRequired is the error of Login for a user with a second factor whose password was right.
type CodeRequired struct{ Halfway Halfway }

func (e *CodeRequired) Error() string { return "a code of the second factor is required" }

// EncodeSecret returns a secret as people type it into an authenticator app.
func EncodeSecret(secret []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
}

// NewSecret returns the secret of a second factor, which EnableSecondFactor stores.
func (c *Client) NewSecret() ([]byte, error) { return draw(c.random, secretBytes) }

// CodeAt returns the code that a device with this secret shows at a time.
func CodeAt(secret []byte, at time.Time) string {
	return codeOf(secret, at.Unix()/int64(codeStep/time.Second))
}

// codeOf returns the code of a time step (RFC 4226 5.3).
func codeOf(secret []byte, step int64) string {
	mac := hmac.New(sha1.New, secret)
	var text [8]byte
	binary.BigEndian.PutUint64(text[:], uint64(step))
	mac.Write(text[:])
	sum := mac.Sum(nil)
	n := binary.BigEndian.Uint32(sum[sum[len(sum)-1]&15:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", codeDigits, n%1_000_000)
}

// stepOf returns the time step whose code was typed, which is at most codeSlack away from now.
// All steps are compared even after one has matched, so that the time of the check does not tell
// which one it was.
func stepOf(secret []byte, code string, now time.Time) (step int64, ok bool) {
	middle := now.Unix() / int64(codeStep/time.Second)
	for s := middle - codeSlack; s <= middle+codeSlack; s++ {
		if subtle.ConstantTimeCompare([]byte(codeOf(secret, s)), []byte(code)) == 1 {
			step, ok = s, true
		}
	}
	return step, ok
}

// plainCode returns a code as it is stored or shown by an app, without what people type for easier reading.
func plainCode(code string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(code))
}

// spendCode returns the second factor after the use of a code or recovery code, and ErrCode if it is wrong or used.
// A code is accepted once. A person who looks over the user's shoulder cannot use it again within
// its half minute.
func spendCode(f *identity.SecondFactor, code string, now time.Time) (*identity.SecondFactor, error) {
	code = plainCode(code)
	used, ok := f, false
	if len(code) == codeDigits {
		var step int64
		if step, ok = stepOf(f.Secret, code, now); ok {
			used, ok = f.UseStep(step)
		}
	} else {
		used, ok = f.UseRecovery(state.HashSecret(code))
	}
	if !ok {
		return f, ErrCode
	}
	return used, nil
}

// codeSubjects returns the subjects to which a wrong code of a sign-in is counted, as loginSubjects does for passwords:
// a person who knows the password must not be able to keep the user from signing in, at least in a browser that has
// signed in to the account before. From all other browsers together there are few guesses, because codes are short.
func codeSubjects(h Halfway, from Sender) []subject {
	user := strconv.FormatInt(h.User, 10)
	if h.Device != "" {
		return []subject{{byCode, "device " + h.Device + " " + user}}
	}
	return []subject{{byCode, addressSubject(byCode, from.Address).name + " " + user}, {byCodeAccount, user}}
}

// signedInSubjects returns the subjects to which a wrong code of a signed-in user is counted. A person without a
// session of the user does not use them up.
func signedInSubjects(user int64) []subject {
	return []subject{{byCode, "signed in " + strconv.FormatInt(user, 10)}}
}

// withCode uses a code of a user, and runs then in the same command, which is recorded as the user's. Guesses are
// limited for each of the subjects. then gets the user with the code marked as used and must store it.
// The use of the code and the change are one command, so a code cannot be spent on a change that then fails, and two
// changes cannot share a code. The failure is recorded outside of the command, because a command that refuses leaves
// nothing behind.
func withCode[T any](ctx context.Context, c *Client, user int64, code string, subjects []subject,
	then func(*state.Tx, identity.User) (T, error)) (T, error) {
	var none T
	if err := askAdmission(ctx, c, subjects); err != nil {
		return none, err
	}
	ended := undecided
	defer func() { c.system.Send(c.pid, &settling{subjects, ended}) }()
	result, err := decide(ctx, c, nil, func(tx *state.Tx) (T, error) {
		u, ok := identity.FindUser(tx.View(), user)
		if !ok || !u.Active() || u.SecondFactor == nil {
			return none, ErrCode
		}
		var err error
		if u.SecondFactor, err = spendCode(u.SecondFactor, code, tx.Now()); err != nil {
			return none, err
		}
		actAsUser(tx, &u)
		return then(tx, u)
	})
	switch {
	case err == nil:
		ended = succeeded
	case errors.Is(err, ErrCode):
		ended = failed
		u, _ := identity.FindUser(c.state.View(), user)
		c.recordFailure(ctx, identity.WrongCode, &u, err)
	}
	return result, err
}

// isRecoveryCode reports whether code is a recovery code that a user has. It cannot be guessed, so that it signs in
// however many wrong codes were typed. Otherwise a person who knows the password could keep the user out of all
// browsers in which the user has not signed in before.
func (c *Client) isRecoveryCode(user int64, code string) bool {
	u, ok := identity.FindUser(c.state.View(), user)
	if !ok || u.SecondFactor == nil {
		return false
	}
	_, ok = u.SecondFactor.UseRecovery(state.HashSecret(plainCode(code)))
	return ok
}

// FinishLogin makes the session of a login whose code was missing. It returns ErrCode, *Limited, and ErrLogin if the
// password has changed since.
func (c *Client) FinishLogin(ctx context.Context, h Halfway, code string,
	from Sender) (cookie string, s Session, err error) {
	if u, ok := identity.FindUser(c.state.View(), h.User); !ok || u.Epoch != h.Epoch {
		// A login that has ended counts no guess. Otherwise an old password would still be good for pausing the user.
		return "", Session{}, ErrLogin
	}
	if cookie, err = kindSession.mint(c.random); err != nil {
		return "", Session{}, err
	}
	subjects := codeSubjects(h, from)
	if c.isRecoveryCode(h.User, code) {
		subjects = nil
	}
	s, err = withCode(ctx, c, h.User, code, subjects, func(tx *state.Tx, u identity.User) (Session, error) {
		if u.Epoch != h.Epoch {
			return Session{}, ErrLogin
		}
		return addSession(tx, u, state.HashSecret(cookie), c.config.Session, from, c.random, proof{issuer: h.Issuer})
	})
	if err != nil {
		return "", Session{}, err
	}
	return cookie, s, nil
}

// EnableSecondFactor stores the secret of a user's second factor and returns recovery codes, which cannot be read
// later. code shows that the user's device has the secret. All sessions of the user but the one with the id session
// end in the same command, because they were opened with the password alone. It returns ErrCode, ErrExists if the user
// has a second factor, and ErrNotFound.
// The code that is typed here counts as used, like any other.
func (c *Client) EnableSecondFactor(ctx context.Context, user int64, session string, secret []byte,
	code string) (recovery []string, err error) {
	recovery, hashes, err := c.newRecovery()
	if err != nil {
		return nil, err
	}
	err = do(ctx, c, nil, func(tx *state.Tx) error {
		u, ok := identity.FindUser(tx.View(), user)
		switch {
		case !ok || !u.Active():
			return ErrNotFound
		case u.SecondFactor != nil:
			return ErrExists
		}
		f, err := spendCode(&identity.SecondFactor{Secret: secret, Recovery: hashes, Since: tx.Now()}, code, tx.Now())
		if err != nil {
			return err
		}
		u.SecondFactor = f
		for _, s := range identity.ListSessions(tx.View(), user) {
			if s.ID != session {
				identity.RemoveSession(tx, s.ID)
			}
		}
		return identity.PutUser(tx, u)
	})
	if err != nil {
		return nil, err
	}
	return recovery, nil
}

// RenewRecovery replaces the recovery codes of a user who types a code. It returns ErrCode and *Limited.
func (c *Client) RenewRecovery(ctx context.Context, user int64, code string) (recovery []string, err error) {
	recovery, hashes, err := c.newRecovery()
	if err != nil {
		return nil, err
	}
	return withCode(ctx, c, user, code, signedInSubjects(user), func(tx *state.Tx, u identity.User) ([]string, error) {
		f := *u.SecondFactor
		f.Recovery = hashes
		u.SecondFactor = &f
		return recovery, identity.PutUser(tx, u)
	})
}

// DisableSecondFactor removes the second factor of a user who types a code. It returns ErrCode and *Limited.
func (c *Client) DisableSecondFactor(ctx context.Context, user int64, code string) error {
	subjects := signedInSubjects(user)
	_, err := withCode(ctx, c, user, code, subjects, func(tx *state.Tx, u identity.User) (struct{}, error) {
		u.SecondFactor = nil
		return struct{}{}, identity.PutUser(tx, u)
	})
	return err
}

// ConfirmCode uses a code of a signed-in user before a change that a stolen session must not suffice for. A user
// without a second factor needs none. It returns ErrCode and *Limited.
func (c *Client) ConfirmCode(ctx context.Context, user int64, code string) error {
	if u, ok := identity.FindUser(c.state.View(), user); ok && u.SecondFactor == nil {
		return nil
	}
	subjects := signedInSubjects(user)
	_, err := withCode(ctx, c, user, code, subjects, func(tx *state.Tx, u identity.User) (struct{}, error) {
		return struct{}{}, identity.PutUser(tx, u)
	})
	return err
}

// RecoveryLeft returns the number of recovery codes that a user has not used.
func (c *Client) RecoveryLeft(user int64) int {
	if u, ok := identity.FindUser(c.state.View(), user); ok && u.SecondFactor != nil {
		return len(u.SecondFactor.Recovery)
	}
	return 0
}

// newRecovery draws recovery codes. The user sees them once, in groups of four letters, and only
// their hashes are stored.
func (c *Client) newRecovery() (codes []string, hashes []state.Hash, err error) {
	for range recoveryCodes {
		raw, err := draw(c.random, recoveryBytes)
		if err != nil {
			return nil, nil, err
		}
		text := EncodeSecret(raw) // 16 letters
		hashes = append(hashes, state.HashSecret(text))
		codes = append(codes, text[:4]+"-"+text[4:8]+"-"+text[8:12]+"-"+text[12:])
	}
	return codes, hashes, nil
}
