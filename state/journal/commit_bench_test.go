package journal

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// BenchmarkCommit measures what a commit of one settlement costs with the redo log and without it: a ledger page, the
// index of its receipt, and the records of one of 1000 accounts, of its key and of its usage. Without the log a commit
// is one transaction of bbolt.
func BenchmarkCommit(b *testing.B) {
	for name, o := range map[string]Options{"with redo log": {}, "without redo log": {bare: true}} {
		b.Run(name, func(b *testing.B) {
			o.LowWater = -1
			store, err := OpenBolt(b.TempDir(), o)
			if err != nil {
				b.Fatal(err)
			}
			value := make([]byte, 200)
			settle := func(n int) {
				account := fmt.Appendf(nil, "account-%03d", n*7919%1000)
				sequence := binary.BigEndian.AppendUint64(nil, uint64(n))
				_, err := store.Commit(ctx, []Batch{{Ops: []Op{
					{Table: Ledger, Key: sequence, Value: value, New: true},
					{Table: Receipt, Key: sequence, Value: sequence, New: true},
					{Table: Balance, Key: account, Value: value},
					{Table: Spend, Key: account, Value: value},
					{Table: Usage, Key: account, Value: value},
				}}})
				if err != nil {
					b.Fatal(err)
				}
			}
			n := 0
			for range 1000 {
				n++
				settle(n)
			}
			for b.Loop() {
				n++
				settle(n)
			}
			b.StopTimer()
			if err := store.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
