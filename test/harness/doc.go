// Package harness starts the real program: it builds the binary once per test run,
// writes a configuration, runs `stagedoor serve` on a free loopback port, waits until
// it is ready, and ends it with its logs kept.
//
// It is for tests that look at the gateway from outside. It knows the configuration's
// form and nothing else of the gateway; scripted upstreams live with the suites that
// need them.
//
// # Usage
//
//	g := harness.Start(t, harness.Config{...})   a gateway that ends with the test
//	harness.Launch(binary, config)               the same for programs that are no tests
//	g.URL, g.Key                                 where it listens, and a key that may do everything
//
// The binary is built once for all tests of a package. Set STAGEDOOR_BINARY to test another one.
//
// # Files
//
//	build.go gateway.go manager.go   compiling and running the program
//	config.go request.go buffer.go   its configuration, requests, and what it printed
package harness
