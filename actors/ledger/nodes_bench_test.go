package ledger_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/ledger"
	"stagedoor/state/journal/postgres"
	"stagedoor/state/schema"
	"stagedoor/state/statetest/pgserver"
)

// BenchmarkPaidRequestsOnTwoNodes measures how long requests of two gateways over one Postgres wait for their holds.
// Eight clients each make a request after the other, which lasts 20 ms and is settled later, on one account.
func BenchmarkPaidRequestsOnTwoNodes(b *testing.B) {
	server, err := pgserver.Start()
	if err != nil {
		b.Fatal(err)
	}
	defer server.Stop()
	var nodes []*ledger.Client
	for _, name := range []string{"a", "b"} {
		store, err := postgres.Open(ctx, server.URL(), postgres.Options{Node: name, Several: true})
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close()
		s, err := schema.Open(store, time.Now)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		sys := kit.NewSystem(kit.Options{Logger: quiet})
		defer sys.Stop(ctx)
		nodes = append(nodes, start(b, sys, s))
		nodes[0].ShareAccounts(2)
	}
	nodes[1].ShareAccounts(2)
	credit(b, nodes[0], "7", 1_000_000_000)
	time.Sleep(time.Second) // both have read the format of the log
	var mu sync.Mutex
	var waits []time.Duration
	var clients sync.WaitGroup
	var asked atomic.Int64
	b.ResetTimer()
	for client := range 8 {
		clients.Go(func() {
			for n := asked.Add(1); n <= int64(b.N); n = asked.Add(1) {
				began := time.Now()
				ask := ledger.Ask{Account: "7", RequestID: fmt.Sprint("r", n), Amount: 1000, Key: "key_1", Model: "m"}
				h, err := nodes[client%2].Hold(ctx, ask)
				if err != nil {
					b.Error(err)
					return
				}
				waited := time.Since(began)
				mu.Lock()
				waits = append(waits, waited)
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
				h.SettleLater(ledger.Settlement{Amount: 300, Reason: "finished"})
			}
		})
	}
	clients.Wait()
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds()), "p99-µs")
}
