// Command stagedoor is the gateway: see README.md.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stagedoor:", err)
	}
	os.Exit(exitCode(err))
}
