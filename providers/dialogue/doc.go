// Package dialogue is the neutral form of text requests and replies, between the shape of a client and the shape of an
// upstream. A request is a list of turns with ordered parts. A reply is one sequence of events, whether the upstream
// streamed it or sent it whole. The form is the union of the shapes, which are the API formats of vendors (package
// shapes). It knows no wire format: the packages under providers/shapes decode and encode those.
//
// # Usage
//
// A decoder turns a client's body into a Request, an encoder writes the Request for a
// Target, a parser turns the upstream's reply into Events, and an emitter writes the Events
// for the client. A ReplyBuilder collects Events where a whole reply is needed. A Report
// records what a translation dropped or changed.
//
// # Errors
//
// Error carries a failure to the client. Every error code has one constructor, so that it
// has one status, one type and one wording:
//
//	Invalid, Missing, Unsupported   400 for a field that breaks a rule
//	BadField, BadRequest            400 for a rule that has a code of its own
//	CheckModel                      400 for a model name that is too long
//	InvalidJSON, InvalidBody        400 for a body that cannot be read
//	ModerationBlocked               400 for a prompt or picture that moderation refused
//	NotFound, VideoNotFound         404, also NotStored and VideoExpired
//	BodyTimeout                     408 for a body that did not arrive in time
//	IdempotencyKeyReused            409
//	RequestTooLarge, FileTooLarge   413
//	UnsupportedMedia                415
//	InsufficientQuota, RateLimited  429, also TooManyFailures
//	ClientClosed, Stopped           499, for logs: the client has left, or the reply was ended
//	Internal, ServerError           500 for a defect of the gateway
//	InvalidReply, Incomplete        502 for a reply that is broken or cut off
//	UpstreamReset, UpstreamAuth     502 for a call that failed, also UpstreamUnreachable
//	FailedJob, SubmissionUnknown    502 for a video job that failed
//	NoRoute, StorageUnavailable     503 for a dependency that is down, also Unavailable
//	NoMemory, ShuttingDown          503, or 413 for a request that can never fit
//	UpstreamTimeout                 504
//
// Refusal makes any other refusal of http, and Reported makes the error of an upstream. No other
// package writes a literal of Error, and actors choose no status (test/errors_test.go).
//
// # Concurrency
//
// A Request, a Report, a ReplyBuilder and the Events of a reply belong to one request and
// are not safe for concurrent use. An Env and a Sealer serve many requests at a time.
package dialogue
