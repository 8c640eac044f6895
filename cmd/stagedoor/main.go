// Command stagedoor is the gateway: see README.md.
//
// The package has the process itself: the commands serve, config, catalog, models, sandbox, doctor, healthcheck, init
// and version, and the assembly of the gateway. The other groups of commands are packages below this one. No other
// package imports this one, so everything that must know all parts of the gateway is here.
//
// # The start
//
// serve (serve.go) reads the configuration, opens the listeners and then assembles the gateway (assemble.go) from the
// ground up: the state, the actors, the limits, the handlers, the server. A gateway that stands by stops in the
// middle of that, after it has read the state and before anything changes it (standby.go). resume comes last, because
// what it goes on with counts even if the start fails afterwards.
//
// # While it runs
//
// runUntilStopped keeps one goroutine for each duty: the server, the follower of the configuration, the sweeper,
// deletions at providers, backups, the watch on the disk, the pace of the garbage collector, and the control socket.
// Each of them ends with its context. A reload (reload.go) puts a configuration in force as a whole or not at all.
//
// # The stop
//
// drain reports that the gateway is not ready, stops accepting, waits for requests until the grace time has passed
// and ends the rest with an error of their shape. close takes down the parts in the reverse order of their assembly.
// A second signal ends the process at once.
//
// # Files
//
//	main.go command.go options.go         the root command, exit codes, flags that stand above the file
//	serve.go assemble.go                  start, stop, and how the parts are put together
//	authorization.go media.go live.go     parts of the assembly, by subject
//	embeddings.go videoupstreams.go
//	reload.go settings.go                 changes of the configuration, by hand and by administrators
//	memory.go gc.go disk.go               limits by memory, pace of collections, room on the disk
//	nodes.go standby.go                   several gateways of one database
//	tidy.go deletions.go backups.go       what runs beside requests, at intervals
//	observe.go health.go requestlog.go    what is measured, readiness, the log of requests
//	logbuffer.go redact.go                the log: buffered, and without secrets
//	firstkey.go greet.go init.go          first steps of a new installation
//	servicemanager.go healthcheck.go      systemd and containers
package main

import (
	"context"
	"os"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	complain(os.Stderr, err)
	os.Exit(exitCode(err))
}
