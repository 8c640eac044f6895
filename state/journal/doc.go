// Package journal is the durable store beneath the tables of package state:
// named tables of opaque records, changed in atomic batches that are on disk
// before Commit returns. It exists in two forms here, one file of bbolt and memory,
// which pass the same suite (journal/conformance). A Shared is a store that several
// processes write, each with a copy of it in memory that follows one log.
//
// It is not a database for the rest of the program: it does not know what a record means, keeps no secondary index and
// makes no decisions. The rest of the program reads and changes records through package state.
//
// # How a commit becomes durable
//
// bbolt writes whole pages and syncs twice for each transaction, so the store of one file (Bolt) collects changes:
//
//	Commit -> conditions checked (apply.go) -> frame in the redo log, synced -> overlay in memory -> returns
//	later: a checkpoint puts the overlay into bbolt's file -> that part of the redo log may be overwritten
//
// A reader sees bbolt's file with the overlays over it. There are up to two: newest grows with each commit, and older
// is what a running checkpoint writes. After a crash, the commits in the redo log become the newest overlay again.
//
// # Where to look
//
//   - store.go has the interface and what a Commit may contain, tables.go the names of the tables.
//   - bolt.go has Bolt and its Commit; bolt_open.go opens and recovers it; bolt_read.go merges file and overlays.
//   - apply.go decides a commit, overlay.go keeps its changes, checkpoint.go writes them to the file.
//   - Package redo is the log, and changes.go encodes what is in it.
//   - seal.go, metas.go and verify.go find damage; compact.go, export.go, import.go, backup.go and increment.go make
//     copies.
//   - shared.go is the interface for several nodes, and package postgres implements it.
//
// # Rules
//
// Every Store keeps these rules:
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
