package money_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
)

// If requests are folded as fast as they arrive, the file stops growing and the ledger stays exact,
// with ids of the gateway and of clients.
func TestFileIsBoundedByWhatIsKept(t *testing.T) {
	window := 1000
	if testing.Short() {
		window = 250
	}
	for name, id := range requestIDs(t) {
		t.Run(name, func(t *testing.T) {
			dir, clock := t.TempDir(), newClock()
			store, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			s := open(t, store, clock.Now)
			defer s.Close()
			creditUsers(t, s)
			var sizes, inUse []int64
			for n := range 12 {
				if err := try(s, func(tx *state.Tx) error {
					for i := n * window; i < (n+1)*window; i++ {
						if err := payRequest(tx, id(tx.Now(), i), i); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				pack(t, s)
				clock.Add(time.Hour)
				for n := money.MaxFold; n >= money.MaxFold; {
					if n, err = money.Fold(ctx, s, clock.Now().Add(-150*time.Minute), 0); err != nil {
						t.Fatal(err)
					}
				}
				// A backup puts what is in the redo log into the file.
				if err := store.Backup(ctx, io.Discard); err != nil {
					t.Fatal(err)
				}
				info, err := os.Stat(filepath.Join(dir, journal.FileName))
				if err != nil {
					t.Fatal(err)
				}
				sizes, inUse = append(sizes, info.Size()), append(inUse, used(store))
			}
			// The file has twice the size once its most pages at one time exceed a power of two. That depends on when
			// the redo log is written into it, and may happen late. A growing ledger shows in the pages in use. The
			// requests of a window take 150 KB if they are 1,000.
			if inUse[11] > inUse[5]+int64(150*window) || sizes[11] > 2*sizes[5] {
				t.Errorf("the file grows: %d, of which are in use %d", sizes, inUse)
			}
			if totals, err := money.CheckLedger(ctx, s); err != nil || totals.Folded < int64(9*window) {
				t.Errorf("%+v, %v", totals, err)
			}
		})
	}
}
