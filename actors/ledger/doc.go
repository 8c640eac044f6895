// Package ledger charges accounts for requests and media jobs. It holds the most that a
// request may cost before the request is sent, settles the actual cost afterwards and frees
// the rest. A hold is granted only if the amounts spent and held together stay within the
// account's credits and within every budget that applies, at any concurrency. A settlement
// charges the actual cost. If that is above the hold it may leave a debt, which blocks new
// holds until it is paid.
//
// The package knows neither HTTP nor users: an account is the name that API keys carry as
// their user. Requests without a price and requests of keys without a user do not use holds;
// CountUsage counts them.
//
// # Usage
//
//	hold, err := client.Hold(ctx, ledger.Ask{Account: account, RequestID: id, Amount: most})
//	if err != nil {
//		return err // a *dialogue.Error for the client
//	}
//	bill := ledger.Charge(work)
//	err = hold.Settle(ctx, ledger.Settlement{Amount: bill.Amount, Reason: work.End.String()})
//
// Each hold must be ended by Settle, SettleLater or Release. Charge, Estimate and Affordable are pure
// functions: they alone decide what is charged for what.
//
// # Concurrency
//
// Client and Hold are safe for use by many goroutines. The ledger has four parts:
//
//	Client   typed front; finds or spawns the account's actor
//	account  one actor per account with open holds; stops when idle
//	core     the decisions; no clock, no goroutine, no lock
//	state    the source of truth: entries, balances, open holds, receipts (State.Post)
//
// A hold has these states:
//
//	         Hold                  Settle
//	refused <---- (start) ---> open ---------> settled     one of the two,
//	                            | ^  \ Release             exactly once
//	                     Extend +-+   -------> released
//
// The account's actor decides a hold while it handles one message. Each account has at most
// one commit in flight, and decisions made meanwhile go with the next commit, so a thousand
// requests of one account share a few commits. A batch is committed at once if all open
// holds of the account wait for it. Otherwise it waits up to 12 ms for more operations
// (account.commitTime). The result of a commit is handled on the goroutine of the state's
// writer, so nothing that an account does may block.
//
// A caller waits until a durable hold, an adjustment or a settlement by Settle is committed. It
// does not wait for the hold and the settlement of a text request. Such a hold is journaled only
// if it lives longer than linger: a crash before that releases it anyway, and a shorter request
// leaves a single entry for the begin and the end of its hold. Its settlement is journaled within
// linger after its end, so a crash may lose the charges of the last 50 ms.
//
// # Several processes
//
// Where other processes change the same accounts (state.Several), no actor knows what the others hold. A hold is
// granted at once if an allowance of this process covers it (allowances.go). Every other one, and every such Extend,
// waits for its commit, and the journal decides at the end of the log whether the credits and the budgets cover it. If
// they do not, the allowances of all processes are recalled (recall.go).
//
// # Errors
//
// Hold, Extend and Settle return a *dialogue.Error that can be sent to the client: 429
// insufficient_quota if the balance or a budget is too small, 503 storage_unavailable if the
// journal cannot be written. The causes are money.ErrInsufficient and *budget.Error.
//
// # After a crash
//
// Recover ends the holds of a process that has ended. It charges the last progress of each hold,
// or nothing.
package ledger
