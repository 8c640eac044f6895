// Package job is the sandbox's video jobs: they take a time, make progress, end
// well or as ordered, and then have content. The embedded provider and the HTTP
// upstreams run on the same Engine.
//
// An id says everything about its job (when it began, how long it takes, how it
// ends, what it shows), so that any Engine of any process can tell how it stands:
// nothing runs while nobody asks. What an Engine remembers besides is bounded and
// lost with it: which idempotency key began which job, what was deleted, and the
// counts of submissions, polls and downloads that tests look at.
package job
