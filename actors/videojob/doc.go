// Package videojob makes videos. Each job that has not ended has one supervised actor and a record, and a job that has
// ended has only the record.
//
//	handler ── Create ──> record (accepted) ──> job actor ── starts ──> step
//	                                            job actor <── stepped ── step
//
// Pure functions over the record decide what happens to a job (core.go). A step executes one decision, which is to
// submit to the provider, to poll it, or to settle the money. It runs beside the actor, writes the record and then
// reports to the actor, so that everything a client sees is durable. The actor decides when the next step is due. It
// has no state that the record lacks, so a new incarnation, in this process or the next, continues from the record.
// docs/decisions/015-video-job-is-its-record.md gives the reasons.
//
// Clients watch the record of a job (state.WatchVideo), so that the provider is polled once for any number of
// clients.
package videojob
