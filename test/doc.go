// Package test is the black box: it starts the assembled program and talks to it
// over loopback, as a client and as every upstream. It also checks the imports of
// packages (arch_test.go). It is not for unit tests: those sit beside their code.
package test
