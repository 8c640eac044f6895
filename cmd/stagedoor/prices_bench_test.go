package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/state/statetest/pgserver"
)

// BenchmarkPricesOnTwoGateways sends whole requests to two gateways over one Postgres that syncs its files, in turn to
// a model without a price and to one with a price, both for a user with a balance. It reports the requests of a second
// and of a second of the processors of gateways and database without a price, and the part of each that is left with
// one, and the microseconds of the processors that a price adds for gateways and for the database.
// -benchtime=20000x makes about 24,000 requests of each kind.
func BenchmarkPricesOnTwoGateways(b *testing.B) {
	p := newPair(b, pgserver.New(b))
	p.several = true
	gateways := []*program{p.start("gw-1", false), p.start("gw-2", false)}
	config := p.file("gw-1")
	for _, args := range [][]string{{"users", "create", "anna"}, {"credits", "add", "anna", "100000"}} {
		command(b, nil, append(args, "--config", config)...).check(b, exitOK, "", "")
	}
	key := createKey(b, "", "--user", "anna", "--config", config).Key
	for _, g := range gateways {
		g.await("the key", func() bool { return g.ask(key, "paid") == http.StatusOK })
	}
	const rounds, clients = 5, 8
	models := []string{"m", "paid"}
	var rates, perCPU, gatewayTime, databaseTime [2][]float64
	b.ResetTimer()
	for round := range 2 * (rounds + 1) {
		model := (round + round/2) % 2 // each of the two goes first in every second pair of rounds
		began := time.Now()
		gatewaysBefore, databaseBefore := busy(b)
		var sent atomic.Int64
		var load sync.WaitGroup
		for i := range clients {
			load.Go(func() {
				for sent.Add(1) <= int64(b.N)/rounds+1 {
					if err := send(gateways[i%2].URL, key, models[model]); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		load.Wait()
		if round < 2 { // the first round of each begins connections and allowances
			continue
		}
		n := float64(b.N/rounds + 1)
		rates[model] = append(rates[model], n/time.Since(began).Seconds())
		ofGateways, ofDatabase := busy(b)
		ofGateways, ofDatabase = ofGateways-gatewaysBefore, ofDatabase-databaseBefore
		perCPU[model] = append(perCPU[model], n/(ofGateways+ofDatabase))
		gatewayTime[model] = append(gatewayTime[model], ofGateways/n*1e6)
		databaseTime[model] = append(databaseTime[model], ofDatabase/n*1e6)
	}
	median := func(all []float64) float64 { slices.Sort(all); return all[len(all)/2] }
	b.ReportMetric(median(rates[0]), "unpriced/s")
	b.ReportMetric(median(rates[1])/median(rates[0]), "priced-part")
	b.ReportMetric(median(perCPU[0]), "unpriced/cpu-s")
	b.ReportMetric(median(perCPU[1])/median(perCPU[0]), "priced-part/cpu")
	b.ReportMetric(median(gatewayTime[1])-median(gatewayTime[0]), "price-gateways-µs")
	b.ReportMetric(median(databaseTime[1])-median(databaseTime[0]), "price-database-µs")
	for _, g := range gateways {
		g.stop()
	}
}

// send makes a small chat request.
func send(url, key, model string) error {
	body := `{"model":"` + model + `","max_tokens":50,"messages":[{"role":"user","content":"hi [sandbox: pace=max]"}]}`
	req, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %s: %w", res.StatusCode, text, err)
	}
	return nil
}

// busy returns the seconds for which processors have worked for the programs that this process has started and for
// those that they have started, in two parts: those called postgres, and the others.
func busy(b *testing.B) (others, database float64) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		b.Fatalf("no list of processes: %v", err)
	}
	parents, ticks, postgres := map[int]int{}, map[int]int64{}, map[int]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			b.Fatal(err)
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name can have spaces
		user, err1 := strconv.ParseInt(fields[11], 10, 64)
		system, err2 := strconv.ParseInt(fields[12], 10, 64)
		parent, err3 := strconv.Atoi(fields[1])
		if err := errors.Join(err1, err2, err3); err != nil {
			b.Fatal(err)
		}
		parents[pid], ticks[pid] = parent, user+system
		postgres[pid] = bytes.Contains(text, []byte("(postgres)"))
	}
	const second = 100 // ticks
	for pid := range parents {
		for above := parents[pid]; above != 0; above = parents[above] {
			if above != os.Getpid() {
				continue
			}
			if postgres[pid] {
				database += float64(ticks[pid]) / second
			} else {
				others += float64(ticks[pid]) / second
			}
			break
		}
	}
	return others, database
}
