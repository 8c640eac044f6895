// Package budget has the words that the packages of the state share about budgets: what a budget bounds (Scope), for
// how long (Window) and how much (Budget). It keeps nothing. Package identity says which budget a key, a user or a
// group has, and package money counts what was spent of it.
//
// # Usage
//
// A budget is of one Scope for one Window. Left is the rule for both sides: package money asks it what can still be
// held, and pages ask it what is left. The empty Window is the same as WindowTotal, so that records of keys without a
// budget need no word for it.
//
// Days and months are those of UTC, because a gateway has users of all zones and its ledger is folded by the same days.
package budget
