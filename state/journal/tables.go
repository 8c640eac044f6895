package journal

import "slices"

// Table names a set of records. The name is the bucket on disk and never
// changes; a table that is no longer used keeps its name taken.
type Table string

// The tables.
const (
	Meta         Table = "meta"     // small facts about the installation: generated secrets, marks
	User         Table = "user"     // accounts
	Key          Table = "key"      // API keys, by key id
	App          Table = "app"      // OAuth apps
	Grant        Table = "grant"    // OAuth grants, by time-ordered id
	Token        Table = "atok"     // OAuth access tokens, by time-ordered id
	Session      Table = "session"  // browser sessions
	Ledger       Table = "led"      // pages of ledger entries, by the sequence of the last; append-only
	Balance      Table = "bal"      // accounts: what the ledger adds up to
	Job          Table = "job"      // video jobs
	Response     Table = "resphead" // headers of stored responses, by time-ordered id
	Body         Table = "resp"     // bodies of stored responses: cold, read by key
	Event        Table = "respev"   // event logs of stored responses: cold, read by prefix
	Gone         Table = "respgone" // ids of responses that were removed, by their hash
	Conversation Table = "conv"     // conversations; their items and metadata are in Body
	Idem         Table = "idem"     // idempotency keys of video jobs whose records are gone, by owner and key

	Developer Table = "dev"     // developer tokens, by time-ordered id
	Consent   Table = "consent" // what a user allowed an app, by both

	Hold    Table = "hold"     // holds in flight, by the sequence of their begin
	Receipt Table = "rcpt"     // which ledger entries carry the receipts: cold, by the time in the requests' ids
	ByHash  Table = "rcpthash" // the same, of ids without a time: by their hash
	Redeem  Table = "redeem"   // redeem codes, by time-ordered id

	Spend Table = "spend" // what each key has spent, by key id
	Usage Table = "usage" // what was used a day, by day, account, key and model

	Payment Table = "paid" // credits and adjustments that must not be made twice, by account and the client's key

	Folded Table = "ledfold" // what the removed ledger entries of each account add up to: cold

	Delivery Table = "hook" // webhooks in flight, by event and endpoint

	Group Table = "group" // groups of users

	Link Table = "link" // one-time links with which people choose a password

	Passkey  Table = "passkey" // public keys with which users sign in, by time-ordered id
	External Table = "extid"   // identities of users at OpenID providers, by time-ordered id

	Reply     Table = "reply"     // finished replies for repeated requests, by the hash of owner and idempotency key
	ReplyBody Table = "replybody" // their bodies, by the same hash: cold

	Compaction Table = "compaction" // makers of compacted conversations, by the hash of owner and conversation

	Audit Table = "audit" // changes by people, commands and programs, by sequence: cold, append-only

	Allowance Table = "allow" // parts of accounts that one of several processes has, by account, process, key and group
)

var tables = [...]Table{Meta, User, Key, App, Grant, Token, Session, Ledger, Balance, Job, Response, Body, Event, Idem,
	Developer, Consent, Hold, Receipt, Redeem, Spend, Usage, Folded, Payment, Delivery, ByHash, Group, Gone,
	Conversation, Reply, ReplyBody, Compaction, Link, Audit, External, Passkey, Allowance}

// Format returns the first format of a shared log whose entries may change the table. A record of a table that a
// program does not know stops it, so records of a table with a format above 1 are written only when SharedStats.Format
// says that all nodes read them. A new table has the next format.
func (t Table) Format() int {
	switch t {
	case External, Passkey, Allowance:
		return 2
	}
	return 1
}

// Tables returns every table.
func Tables() []Table { return append([]Table(nil), tables[:]...) }

// Known reports whether there is such a table.
func (t Table) Known() bool { return t.index() >= 0 }

// index is the table's place in tables; -1: there is no such table.
func (t Table) index() int { return slices.Index(tables[:], t) }
