package text_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
)

// BenchmarkPrice is an untouched request without a price and with one, whose
// settlement is durable, on disk.
func BenchmarkPrice(b *testing.B) {
	for _, model := range []string{"free", "dear"} {
		for _, clients := range []int{16, 256} {
			b.Run(fmt.Sprintf("%s/clients=%d", model, clients), func(b *testing.B) {
				u := httptest.NewServer(answerJSON(200, wholeAnswer))
				b.Cleanup(u.Close)
				g := open(b, func(g *gateway) {
					store, err := journal.OpenBolt(b.TempDir(), journal.Options{LowWater: -1})
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { store.Close() })
					g.store = store
					g.provider(
						catalog.Provider{
							Name:    "vendor",
							Shape:   dialoguetest.Chat,
							BaseURL: u.URL + "/v1",
							APIKeys: []string{"secret"},
						},
						catalog.Model{Pattern: "dear", Price: dear},
						catalog.Model{Pattern: "free"},
					)
				})
				g.key("user7", func(k *identity.Key) { k.User = "7" })
				if err := g.runtime.Ledger().Credit(b.Context(), "7", budget.MaxCredits, "test"); err != nil {
					b.Fatal(err)
				}
				body := askFor(model, `,"max_tokens":60`)
				b.ReportAllocs()
				b.SetParallelism(clients / 2) // times GOMAXPROCS
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if r := g.do("POST", "/v1/chat/completions", body, g.as("user7")...); r.status != http.StatusOK {
							b.Errorf("got %d %s", r.status, r.body)
							return
						}
					}
				})
			})
		}
	}
}
