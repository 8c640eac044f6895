package dialogue_test

import (
	"errors"
	"testing"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
)

// A refusal is the error of a pool, which says whether an owner's share is used up.
type refusal bool

func (refusal) Error() string   { return "refused" }
func (r refusal) OfShare() bool { return bool(r) }

func TestEachErrorCodeHasOneStatusTypeAndWording(t *testing.T) {
	cause := errors.New("detail for the log")
	for _, tt := range []struct {
		err  *dialogue.Error
		want string // as Error writes it
		code string
	}{
		{dialogue.Invalid("n", "must be 1"), "400 invalid_request_error: n: must be 1", "invalid_value"},
		{dialogue.Missing("n"), "400 invalid_request_error: n: is required", "missing_required_parameter"},
		{dialogue.Unsupported("n", "is not known"), "400 invalid_request_error: n: is not known",
			"unsupported_parameter"},
		{dialogue.MisspelledName("tools.0.Type", "type"),
			`400 invalid_request_error: tools.0.Type: must be written "type"`, "misspelled_name"},
		{dialogue.InvalidJSON("must be an object"),
			"400 invalid_request_error: the request body must be an object", "invalid_json"},
		{dialogue.InvalidBody(nil), "400 invalid_request_error: the request body could not be read to its end",
			"invalid_body"},
		{dialogue.BodyTimeout(nil), "408 invalid_request_error: the request body did not arrive in time",
			"request_timeout"},
		{dialogue.RequestTooLarge(2 << 20),
			"413 request_too_large: the request body is larger than 2 MiB", "request_too_large"},
		{dialogue.FileTooLarge("mask", 4<<20),
			"413 request_too_large: mask: must not be larger than 4 MiB", "file_too_large"},
		{dialogue.FilesTooLarge("image", 4<<20),
			"413 request_too_large: image: all files together must not be larger than 4 MiB", "file_too_large"},
		{dialogue.UnsupportedMedia("the body must be application/json"),
			"415 invalid_request_error: the body must be application/json", "unsupported_media_type"},
		{dialogue.BadRequest("invalid_form", "no form"), "400 invalid_request_error: no form", "invalid_form"},
		{dialogue.BadField("model", "unsupported_operation", "cannot edit"),
			"400 invalid_request_error: model: cannot edit", "unsupported_operation"},
		{dialogue.Refusal(401, "signed_out", "sign in"), "401 authentication_error: sign in", "signed_out"},
		{dialogue.Refusal(403, "denied", "no"), "403 permission_error: no", "denied"},
		{dialogue.NotStored("input", "item_not_found", "is not stored"),
			"404 not_found_error: input: is not stored", "item_not_found"},
		{dialogue.VideoExpired(), "404 not_found_error: the content of the video has expired", "video_expired"},
		{dialogue.FailedJob("moderation", "no"), "502 api_error: no", "moderation"},
		{dialogue.TooManyFailures("too_many_invalid_keys", "wait", 0),
			"429 rate_limit_error: wait", "too_many_invalid_keys"},
		{dialogue.CancelledByOperator(),
			"503 api_error: the request was ended by an operator of the gateway", "cancelled_by_operator"},
		{dialogue.UpstreamReset(nil), "502 api_error: the connection to the upstream provider broke", "upstream_reset"},
		{dialogue.UpstreamUnreachable(nil, false),
			"502 api_error: the upstream provider cannot be reached", "upstream_unreachable"},
		{dialogue.UpstreamUnreachable(nil, true),
			"504 timeout_error: the upstream provider cannot be reached", "upstream_unreachable"},
		{dialogue.UpstreamAuth(nil),
			"502 api_error: the upstream provider refused the gateway's credentials", "upstream_auth_error"},
		{dialogue.ServerError("the gateway was restarted", nil), "500 api_error: the gateway was restarted",
			"server_error"},
		{dialogue.NotFound("key", "key of this name"), "404 not_found_error: there is no key of this name",
			"not_found"},
		{dialogue.VideoNotFound("v\n"), `404 not_found_error: there is no video "v\n"`, "video_not_found"},
		{dialogue.IdempotencyKeyReused("was used for another request"),
			"409 invalid_request_error: Idempotency-Key: was used for another request", "idempotency_key_reused"},
		{dialogue.InsufficientQuota("top up", nil), "429 insufficient_quota: top up", "insufficient_quota"},
		{dialogue.RateLimited("the key is at its limit", 0, nil),
			"429 rate_limit_error: the key is at its limit, try again later", "rate_limit_exceeded"},
		{dialogue.ModerationBlocked(nil), "400 image_generation_user_error: " +
			"the request was rejected by the provider's safety system", "moderation_blocked"},
		{dialogue.ClientClosed(nil), "499 api_error: the client closed the request", "client_closed_request"},
		{dialogue.Internal(cause),
			"500 api_error: the gateway met an internal error: detail for the log", "internal_error"},
		{dialogue.BadUpstream("no id"), "502 api_error: the upstream provider sent an invalid response: no id",
			"upstream_invalid_response"},
		{dialogue.Incomplete(),
			"502 api_error: the upstream provider ended the reply before it was finished", "upstream_incomplete"},
		{dialogue.UpstreamTimeout(nil), "504 timeout_error: the upstream provider took too long", "upstream_timeout"},
		{dialogue.NoRoute(0, nil),
			"503 api_error: no provider is available for this model at the moment, try again later", "no_route"},
		{dialogue.StorageUnavailable("store videos", nil),
			"503 api_error: the gateway cannot store videos at the moment, try again later", "storage_unavailable"},
		{dialogue.ShuttingDown(nil), "503 overloaded_error: the gateway is shutting down, try again", "shutting_down"},
		{dialogue.NoMemory(memory.ErrTooLarge), "413 request_too_large: the request takes more memory than one " +
			"user or key may have at a time: send a smaller one: " + memory.ErrTooLarge.Error(), "request_too_large"},
		{dialogue.NoMemory(refusal(false)), "503 overloaded_error: the gateway has no room for more memory for " +
			"requests, try again: refused", "overloaded"},
		{dialogue.NoMemory(refusal(true)), "429 rate_limit_error: the user or key has as much of the gateway's " +
			"memory for requests as it may have at a time: try again when some of it has ended: refused",
			"memory_share_exceeded"},
		{dialogue.PoolRefused("things", "small things", true), "429 rate_limit_error: the user or key has as much of " +
			"the gateway's small things as it may have at a time: try again when some of it has ended",
			"things_share_exceeded"},
	} {
		if got := tt.err.Error(); got != tt.want || tt.err.Code != tt.code {
			t.Errorf("got %q with code %v, want %q with code %s", got, tt.err.Code, tt.want, tt.code)
		}
		if tt.err.Status == 429 && tt.err.RetryAfter < time.Second && !tt.err.NoRetry {
			t.Errorf("%s: Retry-After is %v, want at least a second", tt.code, tt.err.RetryAfter)
		}
	}
}
