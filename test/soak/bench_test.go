package soak

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/test/harness"
)

// grantsOfOne is the number of grants that one user has for one app without losing any.
const grantsOfOne = 90

// BenchmarkRefresh rotates refresh tokens through the token endpoint of the real
// program, whose state is on disk: every answer is durable.
func BenchmarkRefresh(b *testing.B) {
	const most = 256
	address, err := harness.FreeAddr()
	if err != nil {
		b.Fatal(err)
	}
	s := &soak{
		options: Options{Binary: harness.Binary(b), Dir: b.TempDir()},
		gateway: newGateway(address),
		random:  randomOf(1),
	}
	s.config = configuration(address, s.options.Dir)
	s.process = harness.Start(b, s.config)
	if err := s.reach(); err != nil {
		b.Fatal(err)
	}
	var owners []*grantee
	var tokens []string
	for len(tokens) < most {
		g, one := s.another(b, len(tokens)/grantsOfOne, &owners)
		if err := g.redeem(b.Context(), one); err != nil || one.refresh == "" {
			b.Fatalf("no token: %v, %v", err, s.report.Wrong)
		}
		tokens = append(tokens, one.refresh)
	}
	for _, callers := range []int{1, 16, most} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			rotateAll(b, owners, tokens[:callers])
		})
	}
}

// another begins a grant of the n-th user, who is made first if he is new.
func (s *soak) another(b *testing.B, n int, owners *[]*grantee) (*grantee, *grant) {
	b.Helper()
	if n == len(*owners) {
		g, err := s.newGrantee(b.Context(), s.control, fmt.Sprint("user", n))
		if err != nil {
			b.Fatal(err)
		}
		*owners = append(*owners, g)
	}
	g := (*owners)[n]
	one, err := g.obtain(b.Context())
	if err != nil || one == nil {
		b.Fatalf("no code: %v, %v", err, s.report.Wrong)
	}
	return g, one
}

// rotateAll shares b.N rotations among callers with a token each.
func rotateAll(b *testing.B, owners []*grantee, tokens []string) {
	var wg sync.WaitGroup
	begun := time.Now()
	b.ResetTimer()
	for i := range tokens {
		wg.Go(func() {
			for n := i; n < b.N; n += len(tokens) {
				a, err := owners[i/grantsOfOne].token(b.Context(), "grant_type", "refresh_token", "refresh_token",
					tokens[i])
				if err != nil || a.status != http.StatusOK {
					b.Errorf("refresh: %s, %v", &a, err)
					return
				}
				tokens[i] = gjson.GetBytes(a.body, "refresh_token").String()
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(begun).Seconds(), "refreshes/s")
}
