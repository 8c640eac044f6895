// Command measure tells how stale what watchers hear is, and what a watcher costs,
// with many jobs and many watchers on this machine.
//
//	go run ./test/live/measure
//	go run ./test/live/measure -jobs 1000 -streams 0 -sockets 1000
//
// The age of a change is computed from its revision, which is the time at which it was
// made durable. Watchers and gateway share the machine's
// processors, so the watchers' own work is in the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"stagedoor/test/harness"
	"stagedoor/test/live"
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	var l live.Load
	set := flag.NewFlagSet("measure", flag.ContinueOnError)
	set.IntVar(&l.Jobs, "jobs", 1000, "jobs")
	set.IntVar(&l.Streams, "streams", 1000, "watchers of one job by server-sent events")
	set.IntVar(&l.Sockets, "sockets", 1000, "watchers of one job by WebSocket")
	set.IntVar(&l.All, "all", 0, "watchers of all jobs by WebSocket")
	set.DurationVar(&l.Takes, "takes", 30*time.Second, "how long a job takes")
	binary := set.String("binary", os.Getenv(harness.BinaryEnv), "gateway to measure; built if empty")
	if err := set.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *binary == "" {
		dir, err := os.MkdirTemp("", "stagedoor-measure-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if *binary, err = harness.Build(ctx, dir, "./cmd/stagedoor"); err != nil {
			return err
		}
	}
	data, err := os.MkdirTemp("", "stagedoor-measure-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	g, err := harness.Launch(*binary, live.Config(filepath.Join(data, "data")))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	limited, cancel := context.WithTimeout(ctx, l.Takes+3*time.Minute)
	defer cancel()
	result, err := l.Run(limited, g)
	if result != nil {
		fmt.Printf("%d jobs, %d streams, %d sockets, %d sockets for all: %s\n", l.Jobs, l.Streams, l.Sockets, l.All,
			result)
	}
	return err
}
