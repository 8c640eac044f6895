// Package budget has the words that the packages of the state share about budgets: what a budget bounds (Scope), for
// how long (Window) and how much (Budget). It keeps nothing. Package identity says which budget a key, a user or a
// group has, and package money counts what was spent of it.
package budget
