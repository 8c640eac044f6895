// Package videojob makes videos: one supervised actor for each job that has not
// ended, and nothing but a record for those that have.
//
//	door ── Create ──> record (accepted) ──> job actor ── starts ──> step
//	                                         job actor <── stepped ── step
//
// What happens to a job is decided by pure functions over its record (core.go).
// A step is one of them with what it needs of the world: submit to the provider,
// ask how the job stands, settle its money. It runs beside the actor, writes the
// record, and only then tells: what a client sees is durable. The actor decides
// when the next step is due and holds nothing that the record does not, so that a
// new incarnation, in this process or the next, goes on from the record
// (actors.md 8, decisions.md "Videos").
//
// Whoever watches a job watches its record (state.WatchVideo): there is one poll
// of the provider however many watch.
package videojob
