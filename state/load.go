package state

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// Opening the state takes the time of decoding records and of inserting rows. Only the first can be done by several
// goroutines at a time, because memdb has one writer. So records go in parcels to decoders, and come back in the order
// of their keys, with which memdb's trees are fastest.

// parcel is some records of one table and the rows that were made of them.
type parcel struct {
	table decoder
	recs  []journal.Record
	rows  []any
	err   error
	done  chan struct{} // closed when rows and err are set
}

// decoder is the part of a table that loading needs.
type decoder interface {
	name() string
	decode(journal.Record) (any, error)
	load(*memdb.Txn, []any) error
}

const (
	// parcelSize makes handing over cost nothing beside decoding.
	parcelSize = 256
	// parcelsPerDecoder limits the lead of the decoders over the inserter.
	parcelsPerDecoder = 4
)

// loadTables reads tables of the store into a transaction, as they are at a time. It returns when none of its
// goroutines runs any more.
func loadTables(store journal.Reader, txn *memdb.Txn, now time.Time, registrations []Registration) error {
	tables := map[journal.Table]decoder{}
	var names []journal.Table
	for _, r := range registrations {
		if r.loadFrom == nil {
			tables[r.table.durableTable()] = r.table
			names = append(names, r.table.durableTable())
		} else if err := loadPart(store, txn, r.table, r.table.durableTable(), r.loadFrom(now)); err != nil {
			return err
		}
	}
	decoders := runtime.GOMAXPROCS(0)
	work := make(chan *parcel, decoders*parcelsPerDecoder)
	ordered := make(chan *parcel, decoders*parcelsPerDecoder)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)

	var wg sync.WaitGroup
	for range decoders {
		wg.Go(func() {
			for p := range work {
				p.decode()
			}
		})
	}
	wg.Go(func() {
		for p := range ordered {
			if err := p.insert(txn); err != nil {
				cancel(err) // the reader ends, and the parcels that it has sent are skipped
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

// loadPart reads the records of a table from a key on. It is for tables of which few records are loaded.
func loadPart(store journal.Reader, txn *memdb.Txn, table decoder, name journal.Table, from []byte) error {
	return store.Range(context.Background(), name, from, nil, 0, func(rec journal.Record) error {
		r, err := table.decode(rec)
		if err != nil {
			return err
		}
		return table.load(txn, []any{r})
	})
}

// readParcels reads tables and hands them on in parcels.
func readParcels(ctx context.Context, store journal.Reader, tables map[journal.Table]decoder, names []journal.Table,
	hand func(*parcel)) error {
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
		// The record is valid until this function returns.
		p.recs = append(p.recs, journal.Record{Key: bytes.Clone(rec.Key), Value: bytes.Clone(rec.Value), Rev: rec.Rev})
		return ctx.Err()
	})
	flush()
	return err
}

// decode decodes the records of the parcel, in a goroutine of its own.
func (p *parcel) decode() {
	defer close(p.done)
	p.rows = make([]any, len(p.recs))
	for i, rec := range p.recs {
		if p.rows[i], p.err = p.table.decode(rec); p.err != nil {
			return
		}
	}
	p.recs = nil
}

// insert waits until the parcel is decoded and inserts its rows. Only one goroutine may use the
// transaction, so parcels are inserted one after the other.
func (p *parcel) insert(txn *memdb.Txn) error {
	<-p.done
	if p.err != nil {
		return p.err
	}
	if err := p.table.load(txn, p.rows); err != nil {
		return fmt.Errorf("load %s: %w", p.table.name(), err)
	}
	return nil
}
