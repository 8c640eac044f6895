package state

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// A start is mostly two things, decoding records and inserting rows, and only
// the first can be done by several at a time: memdb has one writer. So records go
// in parcels to decoders, and come back in the order of their keys, which is the
// one that memdb's trees are fastest with.

// parcel is some records of one table and what was made of them.
type parcel struct {
	table decoder
	recs  []journal.Record
	rows  []any
	err   error
	done  chan struct{} // closed when rows and err are set
}

// decoder is a table as far as loading it is concerned.
type decoder interface {
	name() string
	decode(journal.Record) (any, error)
}

const (
	// parcelSize makes handing over cost nothing beside decoding.
	parcelSize = 256
	// parcelsPerDecoder is how far ahead of the inserter decoders may be.
	parcelsPerDecoder = 4
)

// loadTables reads whole tables of the store into a transaction. It returns when
// nothing of it runs any more.
func loadTables(store journal.Store, txn *memdb.Txn, tables map[journal.Table]decoder, names []journal.Table) error {
	decoders := runtime.GOMAXPROCS(0)
	work := make(chan *parcel, decoders*parcelsPerDecoder)
	ordered := make(chan *parcel, decoders*parcelsPerDecoder)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)

	var wg sync.WaitGroup
	for range decoders {
		wg.Go(func() {
			for p := range work {
				p.fill()
			}
		})
	}
	wg.Go(func() {
		for p := range ordered {
			if err := p.insert(txn); err != nil {
				cancel(err) // the reader ends; what it sent already is passed over
			}
		}
	})
	err := readParcels(ctx, store, tables, names, func(p *parcel) {
		ordered <- p
		work <- p
	})
	close(work)
	close(ordered)
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// readParcels reads tables and hands them on in parcels.
func readParcels(ctx context.Context, store journal.Store, tables map[journal.Table]decoder, names []journal.Table, hand func(*parcel)) error {
	var p *parcel
	flush := func() {
		if p != nil {
			hand(p)
			p = nil
		}
	}
	_, err := store.Load(ctx, names, func(t journal.Table, rec journal.Record) error {
		if p != nil && (p.table != tables[t] || len(p.recs) == parcelSize) {
			flush()
		}
		if p == nil {
			p = &parcel{table: tables[t], recs: make([]journal.Record, 0, parcelSize), done: make(chan struct{})}
		}
		// A record is the store's when this returns.
		p.recs = append(p.recs, journal.Record{Key: bytes.Clone(rec.Key), Value: bytes.Clone(rec.Value), Rev: rec.Rev})
		return ctx.Err()
	})
	flush()
	return err
}

func (p *parcel) fill() {
	defer close(p.done)
	p.rows = make([]any, len(p.recs))
	for i, rec := range p.recs {
		if p.rows[i], p.err = p.table.decode(rec); p.err != nil {
			return
		}
	}
	p.recs = nil
}

func (p *parcel) insert(txn *memdb.Txn) error {
	<-p.done
	if p.err != nil {
		return p.err
	}
	for _, r := range p.rows {
		if err := txn.Insert(p.table.name(), r); err != nil {
			return fmt.Errorf("load %s: %w", p.table.name(), err)
		}
	}
	return nil
}
