// Package statetest helps tests of state, and of the actors that keep their data in
// it. It has a store that fails on demand, a process that is killed while it writes,
// and a clock that stands until it is set. Each test defines and checks its own records.
package statetest
