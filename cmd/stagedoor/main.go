// Command stagedoor is the gateway: see README.md.
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
