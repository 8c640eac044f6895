package schema_test

import (
	"testing"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
)

// unaudited are the tables of identity and money whose changes are not in the audit log, with the reason.
var unaudited = map[journal.Table]string{
	journal.Token:     "an access token allows nothing that its grant, which is audited, does not allow",
	journal.Balance:   "requests change it all the time; money.Post records credits and adjustments",
	journal.Hold:      "belongs to a request",
	journal.Allowance: "belongs to a process",
	journal.Spend:     "adds up requests",
	journal.Usage:     "adds up requests",
	journal.Payment:   "is the idempotency key of a credit or adjustment, which money.Post records",
}

// A new table of these modules is audited, or says here why not.
func TestEveryTableOfIdentityAndMoneyIsAuditedOrSaysWhyNot(t *testing.T) {
	tables := append(identity.Module().Tables, money.Module().Tables...)
	known := map[journal.Table]state.Registration{}
	for _, r := range tables {
		known[r.Table()] = r
		if r.Audited() == (unaudited[r.Table()] != "") {
			t.Errorf("table %s: audited %v, reason not to be: %q", r.Table(), r.Audited(), unaudited[r.Table()])
		}
	}
	for table := range unaudited {
		if _, ok := known[table]; !ok {
			t.Errorf("there is no table %s", table)
		}
	}
}
