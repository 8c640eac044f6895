package soak

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net/http"
	"time"

	"stagedoor/actors/ledger"
	"stagedoor/http/admin"
	"stagedoor/http/adminapi"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
)

// condition classifies the directory of a dead process.
type condition uint8

const (
	killed    condition = iota // as SIGKILL left it: holds may be open
	recovered                  // a process has started on it since, and was not loaded
)

// directory opens the state of a dead process and calls do with it. It takes the lock of the directory, so it fails if
// the process is still there.
func (s *soak) directory(ctx context.Context, do func(context.Context, *state.State) error) (err error) {
	store, err := journal.OpenBolt(s.options.Dir, journal.Options{Timeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	st, err := schema.Open(store, time.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return do(ctx, st)
}

// audit adds up the whole ledger and compares it with the replies that clients got.
func (s *soak) audit(ctx context.Context, c condition) error {
	return s.directory(ctx, func(ctx context.Context, st *state.State) error {
		books, err := money.CheckLedger(ctx, st)
		if errors.Is(err, journal.ErrCorrupt) {
			s.wrong("the books do not balance: %v", err)
		} else if err != nil {
			return err
		}
		if c == recovered && (books.Open != 0 || books.Held != 0) {
			s.wrong("%d holds of %d are left after the recovery", books.Open, books.Held)
		}
		s.auditCredits(st)
		return s.auditLedger(ctx, st)
	})
}

// auditCredits checks that each account has got what was paid in, and each redeem code once. A payment whose answer was
// lost may have been made or not, so the credits may be higher by those.
func (s *soak) auditCredits(st *state.State) {
	want := map[string]int64{richAccount: richCredits, poorAccount: poorCredits}
	used := map[state.Hash]bool{}
	for _, c := range money.ListRedeemCodes(st.View()) {
		if !c.Used.IsZero() {
			used[c.Hash] = true
			want[c.UsedBy] += c.Amount
		}
	}
	doubtful := map[string]int64{}
	for _, b := range s.depositors {
		least, most := b.paid()
		want[b.account] += least
		doubtful[b.account] += most - least
	}
	for account, credits := range want {
		if a := money.FindAccount(st.View(), account); a.Credits < credits || a.Credits > credits+doubtful[account] {
			s.wrong("account %s has credits of %d, want %d and at most %d more", account, a.Credits, credits,
				doubtful[account])
		}
	}
	for _, r := range s.redeems {
		for _, v := range r.vouchers {
			if v.used == accepted && !used[money.HashRedeemCode(v.code)] {
				s.wrong("a redeem code that was taken is not used")
			}
		}
	}
}

// auditLedger checks that every settlement is of a request that was made, that it is the only one of the request and of
// the amount in its client's reply, and that no settlement is missing. A hold that a crash has ended without its
// settlement is allowed for a reply that the kill may have overtaken.
func (s *soak) auditLedger(ctx context.Context, st *state.State) error {
	sent := map[string]*paid{}
	for _, p := range s.payers {
		for _, one := range p.sent {
			sent[one.id] = one
		}
	}
	ended := map[string]int64{}
	err := money.ReadLedger(ctx, st, 0, func(e money.Entry) error {
		if e.Kind != money.Settle && e.Kind != money.Release {
			return nil
		}
		one := sent[e.Request]
		_, twice := ended[e.Request]
		switch {
		case one == nil:
			s.wrong("entry %d is about %q, which no client sent", e.Sequence, e.Request)
		case twice:
			s.wrong("request %s ends twice", e.Request)
		case e.Reason == ledger.ReasonCrash && s.mayBeLost(one):
			one.charged = e.Amount // only the hold was durable
		case one.said == accepted && e.Amount != one.charged, one.said == refused && e.Amount != 0:
			s.wrong("request %s costs %d in the ledger, want %d", e.Request, e.Amount, one.charged)
		}
		ended[e.Request] = e.Amount
		return nil
	})
	for id, one := range sent {
		if _, ok := ended[id]; !ok && one.said == accepted && one.charged != 0 && !s.mayBeLost(one) {
			s.wrong("request %s is not in the ledger", id)
		}
	}
	return err
}

// The accounts and the writers. On one account there is always enough, on the other never for long, so that refusals
// and replies that end early come up too. Amounts are in micro-dollars.
const (
	richAccount, richCredits = "rich", 1_000_000_000_000
	poorAccount, poorCredits = "poor", 50_000
	voucherAmount            = 20_000
	vouchersPerCycle         = 10

	richPayers, poorPayers, grantees, keepers = 4, 2, 3, 2

	password = "correct horse battery"
	callback = "https://app.example.com/cb"
)

// prepare makes users, apps, keys and money, and the writers who use them. The money and the redeem codes are
// written into the directory after the process has been killed.
func (s *soak) prepare(ctx context.Context) error {
	if err := s.start(); err != nil {
		return err
	}
	err := s.operate(func(c *admin.Client) error {
		for n := range grantees {
			g, err := s.newGrantee(ctx, c, fmt.Sprint("user", n))
			if err != nil {
				return err
			}
			s.writers = append(s.writers, g)
		}
		g, err := s.newGrantee(ctx, c, poorAccount)
		if err != nil {
			return err
		}
		s.redeems = append(s.redeems, &redeemer{grantee: g})
		if err := addUser(ctx, c, richAccount); err != nil {
			return err
		}
		for range richPayers {
			if err := s.addPayer(ctx, c, richAccount); err != nil {
				return err
			}
		}
		for range poorPayers {
			if err := s.addPayer(ctx, c, poorAccount); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range s.redeems {
		s.writers = append(s.writers, r)
	}
	s.depositors = append(s.depositors, &depositor{soak: s, account: richAccount, random: s.stream()})
	for _, b := range s.depositors {
		s.writers = append(s.writers, b)
	}
	for range keepers {
		s.writers = append(s.writers, &keeper{soak: s, random: s.stream()})
	}
	return errors.Join(s.kill(), s.directory(ctx, s.fund))
}

// stream returns another source of randomness of the same seed. Each writer has its own, because they run at the same
// time and one source would make what each of them does depend on the others' speed.
func (s *soak) stream() *mrand.Rand {
	return mrand.New(mrand.NewPCG(s.options.Seed, s.random.Uint64()))
}

// addPayer creates a key of an account and the writer that spends with it.
func (s *soak) addPayer(ctx context.Context, c *admin.Client, account string) error {
	secret, k, err := identity.NewKey(time.Now(), rand.Reader)
	if err != nil {
		return err
	}
	k.Name, k.User = "payer", account
	if err := c.AddKey(ctx, k); err != nil {
		return err
	}
	p := &payer{soak: s, name: fmt.Sprint("payer", len(s.payers)), account: account, key: secret, random: s.stream()}
	s.payers = append(s.payers, p)
	s.writers = append(s.writers, p)
	return nil
}

// addUser creates a user with the password that all users have.
func addUser(ctx context.Context, c *admin.Client, username string) error {
	word := password
	in := adminapi.NewUser{Username: username, Password: &word}
	return c.API().Do(ctx, http.MethodPost, "/users", nil, in, &adminapi.CreatedUser{})
}

// newGrantee creates a user with an app and a browser.
func (s *soak) newGrantee(ctx context.Context, c *admin.Client, username string) (*grantee, error) {
	if err := addUser(ctx, c, username); err != nil {
		return nil, err
	}
	var app adminapi.AppSecret
	in := adminapi.NewApp{Owner: username, Name: "App", RedirectURI: callback}
	if err := c.API().Do(ctx, http.MethodPost, "/apps", nil, in, &app); err != nil {
		return nil, err
	}
	b, err := newBrowser(s.gateway, username, password)
	if err != nil {
		return nil, err
	}
	return &grantee{
		soak:       s,
		browser:    b,
		client:     app.ClientID,
		secret:     app.Secret,
		callback:   callback,
		random:     s.stream(),
		successors: map[string]string{},
	}, nil
}

// fund puts money on the accounts and makes redeem codes.
func (s *soak) fund(ctx context.Context, st *state.State) error {
	for account, credits := range map[string]int64{richAccount: richCredits, poorAccount: poorCredits} {
		if _, _, err := money.CommitPostings(ctx, st, account,
			[]money.Posting{{Kind: money.Credit, Amount: credits}}); err != nil {
			return err
		}
	}
	for _, r := range s.redeems {
		var records []money.RedeemCode
		for range vouchersPerCycle * s.options.Cycles {
			code, record, err := money.NewRedeemCode(time.Now(), rand.Reader, voucherAmount, "soak")
			if err != nil {
				return err
			}
			r.vouchers = append(r.vouchers, &voucher{code: code, used: refused})
			records = append(records, record)
		}
		if err := money.AddRedeemCodes(ctx, st, records); err != nil {
			return err
		}
	}
	return nil
}
