package work

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"stagedoor/state"
)

// Types of alerts, which go to the operator's own endpoint.
const (
	AlertBudget      = "budget.reached"
	AlertKeyRefused  = "provider.key_refused"
	AlertUnavailable = "provider.unavailable"
	AlertDisk        = "disk.filling"
	AlertTest        = "alert.test"
)

// AlertTypes returns the types that an operator can choose.
func AlertTypes() []string {
	return []string{AlertBudget, AlertKeyRefused, AlertUnavailable, AlertDisk}
}

// BudgetLevels are the parts of a budget in per cent whose reaching is an alert. Their places are the bits of
// BudgetAlert.Reached.
var BudgetLevels = []int64{50, 80, 100}

// AlertsWanted reports whether alerts of a type go anywhere.
func AlertsWanted(s *state.State, event string) bool {
	return len(alertHooks(&state.MemoryOf[*memory](s).outbox, event)) > 0
}

// alertHooks returns the webhooks that get an alert. A test alert goes to all webhooks for alerts,
// whatever types they have chosen.
func alertHooks(o *outbox, event string) (ids []string) {
	if all := o.webhooks.Load(); all != nil {
		for _, w := range *all {
			if w.Alerts && (w.Types == nil || event == AlertTest || slices.Contains(w.Types, event)) {
				ids = append(ids, w.ID)
			}
		}
	}
	return ids
}

// BudgetAlert says which levels of a budget are reached.
type BudgetAlert struct {
	Scope string // durable name of the scope of the budget
	// Period identifies the window of the budget that is meant. A later window has a larger one. Kind tells periods
	// of days, months and all time apart.
	Period, Kind uint64
	Reached      uint64 // one bit for each of BudgetLevels
	Amount       int64  // of the budget
	Refused      bool   // a request was refused because of what is spent, which counts as the last level
	// Data returns the data of the alert of one level.
	Data func(percent int64) json.RawMessage
}

const (
	levelBits = 3
	kindBits  = 2
	lastLevel = 1 << (levelBits - 1)
)

// period packs the period and its kind into one number. A mark, which is stored as a fact, has the levels that are
// reached below it.
func (b *BudgetAlert) period() uint64 { return b.Period<<kindBits | b.Kind }

const (
	budgetFacts = "alert/budget/"
	// ofAmount ends the name of the fact that keeps the amount of the budget whose last level was an alert.
	ofAmount = "/amount"
)

// fact returns the name under which the mark is stored. It has a hash of the scope, which bounds
// its length.
func (b *BudgetAlert) fact() string { return budgetFacts + digest(b.Scope) }

// changes returns the levels that have not been an alert in this period, the mark, and whether it must be kept. A level
// that is not reached any more, because the budget was raised, is an alert again when it is reached. The last level
// stays until the budget is raised, because what has refused one request may have enough for the next.
func (b *BudgetAlert) changes(v state.View) (fresh, mark uint64, changed bool) {
	kept := v.NumberFact(b.fact())
	old, period, reached := kept&(1<<levelBits-1), kept>>levelBits, b.Reached
	switch now := b.period(); {
	case period != now && period&(1<<kindBits-1) == b.Kind && period > now:
		return 0, 0, false // the clock of this node is behind, or went back
	case period != now:
		old = 0
	}
	if b.Refused {
		reached |= lastLevel
	}
	if amount := v.NumberFact(b.fact() + ofAmount); amount != 0 {
		if amount < uint64(b.Amount) {
			old &^= lastLevel
		}
		reached |= old & lastLevel
	}
	mark = b.period()<<levelBits | reached
	return reached &^ old, mark, kept != mark && (reached != 0 || kept != 0)
}

// BudgetAlertDue reports whether AddBudgetAlert would change anything.
func BudgetAlertDue(v state.View, b *BudgetAlert) bool {
	_, _, changed := b.changes(v)
	return changed
}

// AddBudgetAlert adds a delivery for each level of a budget that is reached and was not an alert in this period. It
// keeps the levels in the same commit, so that each is sent once, however many processes find it and however often they
// restart. It does nothing while these alerts are not wanted, so that they are sent when they are.
func AddBudgetAlert(tx *state.Tx, b *BudgetAlert) error {
	o := &state.MemoryOf[*memory](tx).outbox
	fresh, mark, changed := b.changes(tx.View())
	hooks := alertHooks(o, AlertBudget)
	if !changed || len(hooks) == 0 {
		return nil
	}
	for i, percent := range BudgetLevels {
		if fresh&(1<<i) == 0 {
			continue
		}
		id := fmt.Sprintf("%s.%d.%d", b.Scope, b.period(), percent)
		if err := o.add(tx, hooks, AlertBudget, id+tx.Now().String(), b.Scope, b.Data(percent)); err != nil {
			return err
		}
	}
	if fresh&lastLevel != 0 {
		if err := tx.PutNumberFact(b.fact()+ofAmount, uint64(b.Amount)); err != nil {
			return err
		}
	}
	return tx.PutNumberFact(b.fact(), mark)
}

// ForgetBudgetAlerts removes what AddBudgetAlert has kept of scopes that are not among those given, such as deleted
// keys. It removes nothing once current reports false, which it must if a scope may have got a budget since they were
// listed.
func ForgetBudgetAlerts(ctx context.Context, s *state.State, scopes iter.Seq[string], current func() bool) error {
	keep := map[string]bool{}
	for scope := range scopes {
		keep[(&BudgetAlert{Scope: scope}).fact()] = true
	}
	var stale []string
	for name := range s.View().Facts(budgetFacts) {
		if !keep[strings.TrimSuffix(name, ofAmount)] {
			stale = append(stale, name)
		}
	}
	const perCommit = 1000
	for some := range slices.Chunk(stale, perCommit) {
		err := state.Run(ctx, s, func(tx *state.Tx) error {
			for _, name := range some {
				if current() {
					tx.RemoveFact(name)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// AddAlert adds a delivery unless there was one of the same type and subject within quiet, which it reports by false.
// Several processes that find the same thing therefore send one alert. The time of the last alert is kept in the same
// commit, and only if an endpoint wants it: a webhook that is added later gets the next one without a pause. A quiet of
// 0 means that every alert is sent.
func AddAlert(tx *state.Tx, event, subject string, data json.RawMessage, quiet time.Duration) (added bool, err error) {
	o := &state.MemoryOf[*memory](tx).outbox
	fact := "alert/last/" + digest(event+"\x00"+subject)
	last, _ := tx.View().TimeFact(fact)
	hooks := alertHooks(o, event)
	if len(hooks) == 0 || quiet > 0 && tx.Now().Sub(last) < quiet {
		return false, nil
	}
	return true, errors.Join(o.add(tx, hooks, event, event+subject+tx.Now().String(), subject, data),
		tx.PutTimeFact(fact, tx.Now()))
}

// add adds a delivery of an alert for each endpoint. name tells the event from all others.
func (o *outbox) add(tx *state.Tx, hooks []string, event, name, subject string, data json.RawMessage) error {
	id := "evt_" + digest(name)
	for _, hook := range hooks {
		o.makeRoom(tx, "")
		err := deliveries.Put(tx, Delivery{ID: id + "." + hook, Webhook: hook, Event: id, Type: event, Subject: subject,
			Created: tx.Now(), Due: tx.Now(), Data: data, Node: tx.Node()})
		if err != nil {
			return err
		}
	}
	return nil
}

// digest returns a short hash of a name, for an id that must not contain it.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}
