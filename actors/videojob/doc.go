// Package videojob makes videos. Each job that has not ended has one supervised actor and a record,
// and a job that has ended has only the record.
//
//	handler ── Create ──> record (accepted) ──> job actor ── starts ──> step
//	                                            job actor <── stepped ── step
//
// Pure functions over the record decide what happens to a job (core.go). A step executes one
// decision, which is to submit to the provider, to poll it, or to settle the money. It runs beside
// the actor, writes the record and then reports to the actor, so that everything a client sees is
// durable. The actor decides when the next step is due. It has no state that the record lacks, so a
// new incarnation, in this process or the next, continues from the record.
// docs/decisions/015-video-job-is-its-record.md gives the reasons.
//
//	accepted ──> submitting ──> queued ──> in_progress ──> finalizing ──> completed | failed
//
// A crash may come between any two writes. The rules that keep a job from being made or paid twice:
//
//   - submitting is written before the provider is called. A job that is found in this phase is
//     submitted again only if the provider knows idempotency keys; otherwise it fails, because a
//     second video might be made (recoverJob).
//   - The hold is settled before the record says so. A job in finalizing without a hold was settled
//     already (step.pay).
//   - A record changes only if it still has the content with which the step began (step.save), so
//     of two incarnations only one can decide.
//
// Clients watch the record of a job (work.WatchVideo), so that the provider is polled once for any
// number of clients.
//
// # Usage
//
// Create returns when the provider has accepted or refused the job, or after Config.Wait. The job then goes
// on whatever the client does. TakeOver continues the jobs of processes that have ended and comes last in a
// start.
//
// # Concurrency
//
// A job's actor runs at most one step at a time, on a goroutine that it owns. A step has copies of the
// record, so the two share nothing. Jobs of one key of a client are made one after the other (lockKey), so
// that a repeat does not need the money twice.
//
// # Errors
//
// A refusal before the job exists is returned by Create and leaves no record. After that, a failure is part
// of the record, with a code and a message for the client.
//
// # Files
//
//	core.go             decisions, as pure functions over the record
//	actor.go step.go    one job: when the next step is due, and the step itself
//	parent.go slots.go  all jobs: adoption after a start, and how many may run
//	service.go asset.go what handlers call: creating, content, deletion
//	show.go trace.go    what administrators see of a job, and its spans
package videojob
