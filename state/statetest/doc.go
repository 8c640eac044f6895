// Package statetest helps tests of state, and of the actors that keep their data in
// it. It has a store that fails on demand, a process that is killed while it writes,
// and a clock that stands until it is set. Each test defines and checks its own records.
//
// # Contents
//
//	Faulty       a store whose commits a test refuses, delays or loses the answer of
//	DecideTwice  a store that decides each group of commands twice, as a shared one may
//	Cluster      several nodes over one log, in memory, with a silence and a trim on demand
//	Kill         a child process that is killed while it writes, and what it had reported before
//	Clock        time that stands still until the test moves it
//
// A test that must hold for every store runs on all of them. DecideTwice is the one that finds commands which use the
// time or random numbers while they decide.
//
// # Files
//
//	clock.go                     a clock that tests move
//	faulty.go kill.go twice.go   stores that fail, processes that are killed, commands that are decided again
//	cluster.go                   several nodes in one process
package statetest
