// Package requestlog describes the log of requests: what it has of each request to a model, the language in which users
// search it, and the store that keeps it. It has no prompts, no replies, no keys and no words of providers, which may
// quote any of them.
//
// The log is for people who look for a request. Nothing that the gateway decides depends on it, so it may lose entries:
// the last ones when a process is killed, and others while its disk is too slow. Money is in state/money.
//
// # Usage
//
// Parse reads what a user typed into terms, a Query holds terms and bounds, and a Reader finds its
// records. Two stores implement Reader and Writer: cmd/stagedoor/sqlite in a file, and
// state/requestlog/pglog in the database of several gateways. Both pass the suite in
// state/requestlog/logtest. Only actors/requests writes.
//
// # Places
//
// Each record has a place, which is the microsecond of its beginning and a few bits that tell
// records of the same microsecond apart. Places ascend with time, serve as keys in both stores, and
// are the cursors of pages. Records that are still in flight are not in the log.
//
// # Errors
//
// A broken record does not hide the others: ReadEntry shows it as a failed request without names.
// Errors of a store reach people who search and operators, and never a client of a model.
package requestlog

import (
	"context"
	"time"
)

// Record is one request to a model that has ended. Amounts are in micro-dollars.
type Record struct {
	// At is the place of the record in the log, which is in the order of the beginnings. Append sets it.
	At    int64     `json:"-"`
	Began time.Time `json:"began"`
	ID    string    `json:"id"` // clients may use an id again

	// The fields from here to Tries are the Kind of the record. Many records have the same ones.

	// Node is the gateway that served the request. A log that each gateway keeps for itself has none.
	Node string `json:"node,omitempty"`
	// Owner is the user of the key, or the key if it has none (state.Owner). User is "" for such a key.
	Owner string `json:"-"`
	User  string `json:"user"`
	// Group is the group of the user when the request ended.
	Group   string `json:"group"`
	Key     string `json:"key"`
	KeyName string `json:"key_name"`
	// App is the program that sent the request, by its own account; see flow.About.
	App   string `json:"app"`
	Model string `json:"model"`
	// Provider and Upstream are the provider that was tried last and its name of the model.
	Provider string `json:"provider"`
	Upstream string `json:"upstream_model"`
	Shape    string `json:"shape"`
	Stream   bool   `json:"stream"`
	// Background is set if no client waited, as for background responses and videos.
	Background bool `json:"background"`
	// Untouched is set if the reply passed as its upstream wrote it.
	Untouched bool `json:"untouched"`
	// Status is the HTTP status of the error that the client got, or OK if it got none. Code and Error name the error.
	Status int    `json:"status"`
	Code   string `json:"code"`
	Error  string `json:"error"`
	Reason string `json:"reason"` // finish reason of the reply
	// Losses and Degraded are as in the headers X-Stagedoor-Losses and X-Structured-Output-Degraded.
	Losses   string `json:"losses"`
	Degraded string `json:"degraded"`
	Attempts int    `json:"attempts"`
	Tries    []Try  `json:"tries"`

	Trace     string `json:"trace"`
	Cached    int64  `json:"cached_tokens"`
	Reasoning int64  `json:"reasoning_tokens"`
	Images    int64  `json:"images"`
	Steps     []Step `json:"steps"`

	// Searches compare the amounts from here on.

	Input  int64         `json:"input_tokens"`
	Output int64         `json:"output_tokens"`
	Cost   int64         `json:"cost_micro_usd"`
	Took   time.Duration `json:"-"`
	Queued time.Duration `json:"-"`
	First  time.Duration `json:"-"` // until the first token, or 0
}

// Try is one attempt. Status and Failure are 0 and "" if it did not fail. Failure is "overtaken", without a status, if
// another attempt at the same time (hedging) was faster.
type Try struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Status   int    `json:"status,omitzero"`
	Failure  string `json:"failure,omitzero"`
}

// Step is the time at which a request entered a phase of actors/flow.
type Step struct {
	Phase   string `json:"phase"`
	Attempt int    `json:"attempt"`
	AtUs    int64  `json:"at_us"` // microseconds since the beginning
}

// OK is the status of a request without an error, and ClientLeft that of one whose client closed the connection.
const (
	OK         = 200
	ClientLeft = 499
)

// SlowFirst is the time to the first token from which on a request counts as slow. See Record.Slow.
const SlowFirst = 3 * time.Second

// Failed reports whether the client got an error. A client that left got none.
func (r *Record) Failed() bool { return r.Status != OK && r.Status != ClientLeft }

// Slow reports whether the first token took SlowFirst or longer. A request without a first token, as one for images,
// is slow if all of it took ten times as long.
func (r *Record) Slow() bool {
	if r.First > 0 {
		return r.First >= SlowFirst
	}
	return r.Took >= 10*SlowFirst
}

// Counts are numbers of requests.
type Counts struct{ All, Failed, Slow, Lossy int64 }

// Bar has the counts of the requests that began in the time from From on.
type Bar struct {
	From time.Time
	Counts
}

// Store keeps records. Any goroutine may use it, and readers do not wait for writers.
type Store struct {
	Reader
	Writer
}

// Writer adds and removes records.
type Writer interface {
	// Append adds records, which it does not keep. It sets their places and may sort them.
	Append(ctx context.Context, records []Record) error
	// Prune removes some of what is too old or too much, and reports whether there is more of it. Until it is called,
	// readers do not see what is too old.
	Prune(ctx context.Context) (more bool, err error)
	Close() error
}

// Reader reads records.
type Reader interface {
	// Find calls each with the records that match, newest first, until it returns false. It reads at most
	// q.Limit records.
	Find(ctx context.Context, q *Query, each func(*Record) bool) error
	// Get returns one record of an owner, or of anyone if owner is "". It returns state.ErrNotFound if there is none.
	Get(ctx context.Context, at int64, owner string) (Record, error)
	// Count counts the requests of an owner, or of GroupOwner, or all if owner is "", in bars of a width from a time
	// on. Filters do not apply.
	Count(ctx context.Context, owner string, from, to time.Time, width time.Duration) ([]Bar, error)
	// Spent calls each with what was used, in no particular order, until it returns an error.
	Spent(ctx context.Context, q *SpentQuery, each func(*Spent) error) error
}

// SpentQuery selects what was used in the hours from From on and before To, by steps of Step, which is a number of
// hours. Owner is "" for that of all.
type SpentQuery struct {
	Owner    string
	From, To time.Time
	Step     time.Duration
}

// Spent has the sums of the requests of one key to one model of one provider by one app, in the step of a SpentQuery
// that has the number Step. The log may miss requests, so money is decided by state/money only.
type Spent struct {
	Step                              int
	Owner, Key, Model, Provider, App  string
	Requests, Input, Output, MicroUSD int64
}

// Limits bound the log by the age of its records and by its bytes.
type Limits struct {
	Keep  time.Duration
	Bytes int64
}
