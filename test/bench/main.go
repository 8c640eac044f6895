// Command bench compares the gateway with floors on this machine: small proxies that do as little as the job allows.
// It starts a fake provider, the floors and the real gateway as processes of their own, loads them in turn (forwards,
// then backwards, so that a machine that warms up or slows down favours none of them) and prints ratios.
//
//	go run ./test/bench
//	go run ./test/bench -only 'stream' -d 4s -rounds 3
//
// It is for telling what a change costs, not for absolute numbers: those belong to a quiet machine. Processor time
// per request is the steadiest column.
//
// Each floor does a part of the gateway's work and nothing else: plain forwards and does nothing else, peek also
// checks the key and reads the model, and xlate translates messages into chat and back with encoding/json. A ratio
// against a floor says what the rest of the work costs, on any machine.
//
// # Files
//
//	main.go compare.go process.go   the program, the scenarios, and the processes that it starts
//	floor.go floorstream.go         the floors
//	upstream.go load.go             the fake provider and the clients
//	paid.go result.go               accounts with money, and the table of results
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"

	"stagedoor/test/harness"
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the comparison, or, with a first argument that says so, one of the
// processes it consists of.
func run(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "upstream":
			return serveUpstream(args[1:])
		case "floor":
			return serveFloor(args[1:])
		}
	}
	var o options
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := set.String("only", "", "run scenarios whose name matches this `pattern`")
	set.DurationVar(&o.measure, "d", 2*time.Second, "how long one measurement takes")
	set.DurationVar(&o.warm, "warm", 500*time.Millisecond, "load before a measurement, not counted")
	set.IntVar(&o.clients, "c", 16, "closed-loop clients")
	set.IntVar(&o.rounds, "rounds", 2, "rounds; every second one runs backwards")
	set.IntVar(&o.held, "hold", 500, "streams held at a time in the hold scenario; 0: no such scenario")
	set.StringVar(&o.binary, "binary", os.Getenv(harness.BinaryEnv), "gateway to measure; built if empty")
	if err := set.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	o.only = pattern
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return compare(ctx, o)
}
