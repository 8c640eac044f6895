// Package journal is the durable store beneath the tables of package state:
// named tables of opaque records, changed in atomic batches that are on disk
// before Commit returns. It exists in two forms here, one file of bbolt and memory,
// which pass the same suite (journal/conformance). A Shared is a store that several
// processes write, each with a copy of it in memory that follows one log.
//
// It is not a database for the rest of the program: it knows no record's
// meaning, keeps no secondary index and decides nothing. Those who want to read
// a key or a response ask package state.
//
// The rules every Store keeps:
//
//   - A Commit takes effect wholly or not at all, and is durable when it
//     returns. Conditions (Cond) are checked in the same transaction.
//   - Every record carries a revision: 1 when it is made, one more with every
//     Put. A deleted record that is made again starts at 1, so callers must
//     not use a key twice for different things.
//   - The first write that fails poisons the store for good (ErrPoisoned): after
//     a failed fsync the contents of the disk are unknown, and trying again would hide
//     it. The process drains and starts again from what is really there. A disk
//     that is full is no such failure where the file proves that nothing changed
//     (ErrReadOnly): there may be room later.
//   - Keys should grow with time. Random keys cost bbolt five times the bytes
//     and the time per record.
package journal
