// Package ledger moves money: it holds what a request may cost before it is
// made, settles what it did cost after it, and gives back the rest. A hold is granted
// only if spent and held together stay within the account's credits and within every
// budget that applies, whatever the concurrency. A settlement charges what the request
// cost: above its hold it may leave a debt, which blocks new holds until it is paid.
//
// It is for whoever does paid work: requests and media jobs. It knows neither
// HTTP nor users; an account is the text that keys carry as their user. Work of
// price zero and of keys without a user never comes here.
//
//	Client   typed front; finds or spawns the account's actor
//	account  one actor per account with money in motion; stops when idle
//	core     the decisions; no clock, no goroutine, no lock
//	state    the truth: entries, balances, open holds, receipts (State.Post)
//
// A hold:
//
//	         Hold                  Settle
//	refused <---- (start) ---> open ---------> settled     one of the two,
//	                            | ^  \ Release             exactly once
//	                     Extend +-+   -------> released
//
// A hold is decided in one turn of its account's actor. Each account has at most
// one commit under way; what is decided meanwhile goes with the next, so that a
// thousand requests of one account share a handful of commits. A batch leaves at
// once where all requests at work wait for it; else it waits for company, 12 ms at
// most (account.departs). It lands on the goroutine of the state's writer, so nothing
// that an account does may wait.
//
// What a caller waits for: a durable hold, an adjustment, a settlement. What it
// does not wait for: a hold of a text request. That one is journaled only if it
// lives longer than linger, since a crash before it would have released it anyway,
// and a request that is shorter leaves a single entry for both ends of its hold.
//
// After a crash Recover ends the holds of the process before: at their last
// progress, or with nothing.
//
// What is charged for what is in price.go and charge.go, which are pure.
package ledger
