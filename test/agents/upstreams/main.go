// Command upstreams serves the strict upstreams of test/strict, for agents that run as they are, at the
// address in its only argument. test/agents/run.sh starts it.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"stagedoor/test/strict"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: upstreams HOST:PORT")
		os.Exit(2)
	}
	server := http.Server{Addr: os.Args[1], Handler: strict.NewAgents(), ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}
