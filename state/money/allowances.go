package money

import (
	"fmt"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// Allowance is a part of an account's credits that one of several processes has to itself, for the requests of one key.
// The process holds money out of it without a command. An allowance counts as held, for the credits of the account and
// for the budgets of its key, user and group, so that
//
//	spent + held + allowances <= credits
//
// and the same is true of each budget. Only a charge above its hold can break that, and it leaves a debt. No entry of
// the ledger is made of an allowance, because it moves no money. What is spent out of it is an ordinary settlement.
type Allowance struct {
	Account string `json:"account"`
	AllowanceName
	Node   state.Node `json:"node"` // of the process. Once that has ended, TakeBack removes the allowance
	Amount int64      `json:"amount"`
	// Recalled is the time at which another request was last refused because it lacked this money. The process then
	// returns the part that it does not hold for requests.
	Recalled time.Time `json:"recalled,omitzero"`
}

// AllowanceName identifies one of the allowances of a process on an account.
type AllowanceName struct {
	Key   string `json:"key,omitempty"`
	Group string `json:"group,omitempty"` // name of the scope of the user's group, if the user is in one
}

const byGroup = "group"

// allowances holds the parts of accounts that nodes may spend without asking the journal. There is one for each
// account, node and name.
var allowances = state.Table[Allowance]{
	Name: journal.Allowance,
	ID:   func(a *Allowance) string { return allowanceID(a.Account, a.Node, a.AllowanceName) },
	Indexes: map[string]state.Index[Allowance]{
		byAccount: {Key: func(a *Allowance) []byte { return state.TextKey(a.Account) }},
		byGroup: {Key: func(a *Allowance) []byte {
			if a.Group == "" {
				return nil
			}
			return state.TextKey(a.Group)
		}},
	},
}

// allowanceID returns the key of an allowance. A zero byte separates its parts, because names cannot contain one.
func allowanceID(account string, node state.Node, name AllowanceName) string {
	return account + "\x00" + string(node) + "\x00" + name.Key + "\x00" + name.Group
}

// ListAllowances returns the allowances of one account, or of all if account is "".
func ListAllowances(v state.View, account string) []Allowance {
	if account == "" {
		return allowances.List(v, state.ByID, nil)
	}
	return allowances.List(v, byAccount, state.TextKey(account))
}

// grantAllowance adds to the posting's allowance what there is, up to its Amount and to one of Parts of what the
// account and the limits have left. It refuses to give less than Least, with a *budget.Error if a limit has too little
// left for that, and with ErrInsufficient if it is the account.
func (p *poster) grantAllowance(what *Posting) (uint64, error) {
	if what.Allowance == nil || what.Parts < 1 {
		return 0, fmt.Errorf("%w: a grant without an allowance", state.ErrInvalid)
	}
	room := p.account.free()
	if err := p.flushAllowances(); err != nil {
		return 0, err
	}
	refusal := fmt.Errorf("an allowance of account %s: %w", p.account.ID, ErrInsufficient)
	if what.Limits != nil {
		for _, l := range what.Limits() {
			if left := l.left(p.tx.View(), &p.account, &p.tally); left < room {
				room = left
				refusal = &budget.Error{Scope: l.Scope, Budget: l.Budget, Left: left, Asked: what.Least}
			}
		}
	}
	amount := min(what.Amount, room/what.Parts)
	if amount < max(what.Least, 1) {
		return 0, refusal
	}
	a := p.allowance(what.Allowance)
	a.Amount += amount
	a.Recalled = time.Time{}
	p.account.Granted += amount
	p.moved = amount
	return 0, nil
}

// returnAllowance takes the posting's Amount out of its allowance, or all that is there if that is less. The process
// has seen to it that its own holds do not need that money. A recall counts as answered afterwards, whatever was
// returned. The sequence is 0, as no entry is made.
func (p *poster) returnAllowance(what *Posting) (uint64, error) {
	if what.Allowance == nil {
		return 0, fmt.Errorf("%w: a return without an allowance", state.ErrInvalid)
	}
	p.moveAllowance(what.Allowance, -what.Amount)
	p.allowance(what.Allowance).Recalled = time.Time{}
	return 0, nil
}

// moveAllowance adds an amount to an allowance, or takes it out if it is negative. It takes no more than the allowance
// has, and gives no more than is available, which is nothing while the account is in debt.
func (p *poster) moveAllowance(name *AllowanceName, amount int64) {
	if name == nil || amount == 0 {
		return
	}
	a := p.allowance(name)
	if amount = max(amount, -a.Amount); amount > 0 {
		amount = min(amount, max(p.account.free(), 0))
	}
	a.Amount += amount
	p.account.Granted += amount
	p.moved = amount
}

// coveredByAllowance returns how much of the Amount of a Begin or an Extend comes out of its allowance and so needs no
// other credits: -Move, but no more than the allowance has. It is 0 without an allowance, and negative if the posting
// gives money to its allowance, because that needs credits too.
func (p *poster) coveredByAllowance(what *Posting) int64 {
	if what.Allowance == nil {
		return 0
	}
	return min(-what.Move, p.allowance(what.Allowance).Amount)
}

// allowance returns the changeable allowance of this process. It has no amount if there is none.
func (p *poster) allowance(name *AllowanceName) *Allowance {
	for _, a := range p.allowances {
		if a.AllowanceName == *name {
			return a
		}
	}
	a := &Allowance{Account: p.account.ID, AllowanceName: *name, Node: p.tx.Node()}
	if r := allowances.Get(p.tx.View(), allowances.ID(a)); r != nil {
		*a = r.Rec
	}
	p.allowances = append(p.allowances, a)
	return a
}

// flushAllowances writes the allowances that the command has changed, and removes those without an amount. Limits are
// computed from what is written, so it runs before each check of a limit and once after all postings. It may run again,
// because it writes only what differs from the tables.
func (p *poster) flushAllowances() error {
	for _, a := range p.allowances {
		r := allowances.Get(p.tx.View(), allowances.ID(a))
		switch {
		case a.Amount == 0 && r != nil:
			allowances.Remove(p.tx, r)
		case a.Amount != 0 && (r == nil || r.Rec != *a):
			if err := allowances.Put(p.tx, *a); err != nil {
				return err
			}
		}
	}
	return nil
}

// TakeBack removes allowances, which must be of processes that have ended. It leaves out those that another process has
// taken back. What the process had charged out of them is in the ledger. What it held out of them without an entry is
// free again, as after any crash.
func TakeBack(tx *state.Tx, all []Allowance) error {
	for i := range all {
		r := allowances.Get(tx.View(), allowances.ID(&all[i]))
		if r == nil {
			continue
		}
		account := FindAccount(tx.View(), r.Rec.Account)
		account.Granted -= r.Rec.Amount
		allowances.Remove(tx, r)
		if err := accounts.Put(tx, account); err != nil {
			return err
		}
	}
	return nil
}

// recallAgain is the shortest time between two recalls of one allowance.
const recallAgain = time.Second

// Recallable returns the allowances whose money counts for the scope, those of this process included: of the account,
// of its requests with a key, or of any account in a group.
func Recallable(v state.View, account string, scope budget.Scope) []Allowance {
	if scope.Kind == budget.GroupScope {
		return allowances.List(v, byGroup, state.TextKey(scope.Name()))
	}
	all := allowances.List(v, byAccount, state.TextKey(account))
	if scope.Kind == budget.KeyScope { // the other keys go on with theirs
		all = slices.DeleteFunc(all, func(a Allowance) bool { return a.Key != scope.ID })
	}
	return all
}

// RecallDue reports whether Recall would ask for the allowance now. One that was recalled less than recallAgain ago is
// left alone, because its money is still to come.
func (a *Allowance) RecallDue(now time.Time) bool { return now.Sub(a.Recalled) >= recallAgain }

// Recall asks the processes that have the allowances to return what they do not hold. It marks each allowance that is
// still there and due with the time, and the process that has it sees the mark when it applies the change, see
// OnRecall. Each mark is a record of the command, so a caller with very many allowances divides them.
func Recall(tx *state.Tx, all []Allowance) error {
	for i := range all {
		r := allowances.Get(tx.View(), allowances.ID(&all[i]))
		if r == nil || !r.Rec.RecallDue(tx.Now()) {
			continue
		}
		a := r.Rec
		a.Recalled = tx.Now()
		if err := allowances.Put(tx, a); err != nil {
			return err
		}
	}
	return nil
}

// OnRecall sets the function that is called with each allowance of this process that is recalled. The writer calls it,
// so it must not block.
func OnRecall(s *state.State, report func(account string, name AllowanceName)) {
	state.MemoryOf[*ledgerMemory](s).recalled.Store(&report)
}

// reportRecall is the table's hook for OnRecall.
func (m *ledgerMemory) reportRecall(s *state.State, before, after *Allowance) {
	report := m.recalled.Load()
	if report == nil || after == nil || after.Node != s.Node() || after.Recalled.IsZero() ||
		before != nil && before.Recalled.Equal(after.Recalled) {
		return
	}
	(*report)(after.Account, after.AllowanceName)
}
