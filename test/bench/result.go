package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// A result is one measurement of one target. In a closed loop a sample is a
// request's duration, with held streams a token's lag.
type result struct {
	took      time.Duration
	processor time.Duration // used by the target
	memory    int64         // resident at the end, in bytes
	perStream int64         // bytes of memory for each held stream
	count     int
	p50, p99  time.Duration
}

// summed fills in what the samples say.
func (r result) summed(samples [][]time.Duration) result {
	all := slices.Concat(samples...)
	slices.Sort(all)
	r.count = len(all)
	if r.count > 0 {
		r.p50, r.p99 = all[r.count/2], all[r.count*99/100]
	}
	return r
}

func (r result) rate() float64 { return float64(r.count) / r.took.Seconds() }

// cost is processor time per sample in microseconds.
func (r result) cost() float64 {
	return float64(r.processor.Microseconds()) / float64(max(1, r.count))
}

// median takes each number's own median over the rounds.
func median[T cmp.Ordered](rounds []result, of func(result) T) T {
	var all []T
	for _, r := range rounds {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// print writes a scenario's table; ratios are to the first target.
func (s scenario) print(w io.Writer, results map[string][]result) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	unit, memory := "req", "RSS MiB"
	if s.hold {
		unit, memory = "token", "KiB/stream"
	}
	fmt.Fprintf(w, "%s\n", s.name)
	fmt.Fprintf(table, "target\t%ss/s\tratio\tCPU µs/%s\tratio\tp50 ms\tp99 ms\t%s\t\n", unit, unit, memory)
	floor := results[s.targets[0]]
	for _, name := range s.targets {
		rounds := results[name]
		rate, cost := median(rounds, result.rate), median(rounds, result.cost)
		fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.1f\t%.2f\t%.2f\t%.2f\t%.1f\t\n", name,
			rate, rate/median(floor, result.rate), cost, cost/median(floor, result.cost),
			milliseconds(median(rounds, func(r result) time.Duration { return r.p50 })),
			milliseconds(median(rounds, func(r result) time.Duration { return r.p99 })),
			s.memory(rounds))
	}
	_ = table.Flush() // a terminal that has gone needs no table
	fmt.Fprintln(w)
}

// memory is MiB in all, or KiB for each stream.
func (s scenario) memory(rounds []result) float64 {
	if s.hold {
		return float64(median(rounds, func(r result) int64 { return r.perStream })) / (1 << 10)
	}
	return float64(median(rounds, func(r result) int64 { return r.memory })) / (1 << 20)
}

// milliseconds returns a duration for a table.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
