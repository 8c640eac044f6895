// Package test is the black box: it starts the assembled program and talks to it
// over loopback, as a client and as every upstream. It also keeps the house in
// shape (arch_test.go). It is not for unit tests: those sit beside their code.
package test
