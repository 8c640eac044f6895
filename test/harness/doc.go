// Package harness starts the real program: it builds the binary once per test run,
// writes a configuration, runs `stagedoor serve` on a free loopback port, waits until
// it is ready, and ends it with its logs kept.
//
// It is for tests that look at the gateway from outside. It knows the configuration's
// form and nothing else of the gateway; scripted upstreams live with the suites that
// need them.
package harness
