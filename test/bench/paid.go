package main

import (
	"context"
	"errors"
	"os"
	"time"

	"stagedoor/state/budget"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/test/harness"
)

// charge puts a price on every model, the state on disk, and money on the account
// of the key's user.
func charge(c *harness.Config) (forget func() error, err error) {
	dir, err := os.MkdirTemp("", "stagedoor-bench-state-")
	if err != nil {
		return nil, err
	}
	forget = func() error { return os.RemoveAll(dir) }
	if err := fill(dir, "1"); err != nil {
		return nil, errors.Join(err, forget())
	}
	c.Data = dir
	c.Keys[0].User = "1"
	for name, m := range c.Models {
		m.Price = &harness.Price{Input: 1, Output: 10}
		c.Models[name] = m
	}
	return forget, nil
}

// fill puts money on an account in a data directory on which no gateway runs.
func fill(dir, account string) (err error) {
	store, err := journal.OpenBolt(dir, journal.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	s, err := schema.Open(store, time.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	_, posted, err := money.CommitPostings(context.Background(), s, account,
		[]money.Posting{{Kind: money.Credit, Amount: budget.MaxCredits}})
	if err != nil {
		return err
	}
	return posted[0].Err
}
