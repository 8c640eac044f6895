// Package statetest is what tests of state, and of the actors that keep theirs in
// it, share: a store that fails when it is told to, a process that is killed while
// it writes, and a clock that stands until it is set. It is for tests only, and
// knows nothing of what is kept: that is for each test to say and to check.
package statetest
