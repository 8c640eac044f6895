package state

import (
	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// A registration makes a table part of the state. Transactions, the writer and the loader know tables by their
// registrations only.
type registration struct {
	table interface {
		durableTable() journal.Table
		schema() *memdb.TableSchema
		decoder
	}
	hooks
}

// hooks keep figures beside a table up to date. A hook that is nil does nothing.
type hooks struct {
	// loaded runs once, when all tables have been read.
	loaded func(*State)
	// written runs for each change of a row while commands run, and with before and after exchanged when a change is
	// taken back. Commands that run later see what it did.
	written func(*Tx, change)
	// committed runs for each change that has become durable and visible.
	committed func(*State, change)
}

// registrations are the tables that Open loads into memory.
var registrations = []registration{
	{table: &facts, hooks: hooks{loaded: (*State).restoreClock}},
	{table: &keys, hooks: hooks{
		loaded: func(s *State) { s.hot.fill(s.snapshot()) },
		committed: func(s *State, c change) {
			s.hot.change(c)
			s.keyEra.Add(1)
		},
	}},
	{table: &responses, hooks: hooks{
		loaded: (*State).countResponses,
		committed: func(s *State, c change) {
			s.responses.Add(weight(c.after) - weight(c.before))
			s.kept.add(c)
		},
	}},
	{table: &goneResponses},
	{table: &accounts, hooks: hooks{loaded: func(s *State) { s.ledger = lastEntry(s.snapshot()) }}},
	{table: &holds},
	{table: &redeemCodes},
	{table: &users, hooks: hooks{
		loaded: func(s *State) { s.roster.fill(s.snapshot()) }, // of users and groups
		committed: func(s *State, c change) {
			s.roster.changeUser(c)
			s.keyEra.Add(1)
		},
	}},
	{table: &groups, hooks: hooks{committed: func(s *State, c change) {
		s.roster.changeGroup(c)
		s.keyEra.Add(1)
	}}},
	{table: &sessions},
	{table: &developers},
	{table: &apps},
	{table: &grants},
	{table: &accessTokens},
	{table: &consents},
	{table: &spends},
	{table: &payments},
	{table: &videos},
	{table: &videoKeys},
	{table: &deliveries, hooks: hooks{
		loaded:  (*State).countDeliveries,
		written: func(tx *Tx, c change) { tx.outbox.count(c) },
	}},
}
