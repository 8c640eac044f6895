package openapi

import (
	"errors"
	"strconv"
	"testing"

	"stagedoor/providers/dialogue"
)

// TestCodesHaveTheStatusOfTheirErrors compares docs/errors.md with the constructors of package dialogue.
func TestCodesHaveTheStatusOfTheirErrors(t *testing.T) {
	codes := map[string]Code{}
	for _, c := range Codes() {
		if codes[c.Code] != (Code{}) {
			t.Errorf("%s occurs twice in docs/errors.md", c.Code)
		}
		codes[c.Code] = c
	}
	cause := errors.New("cause")
	for _, e := range []*dialogue.Error{
		dialogue.Invalid("n", "rule"), dialogue.Missing("n"), dialogue.Unsupported("n", "rule"),
		dialogue.UnknownPart("n"),
		dialogue.MisspelledName("N", "n"), dialogue.InvalidJSON("rule"), dialogue.InvalidBody(cause),
		dialogue.BodyTimeout(cause), dialogue.RequestTooLarge(1), dialogue.FileTooLarge("f", 1),
		dialogue.UnsupportedMedia("rule"), dialogue.NotFound("id", "thing"), dialogue.ConversationLocked(),
		dialogue.VideoNotFound("id"), dialogue.VideoExpired(), dialogue.IdempotencyKeyReused("rule"),
		dialogue.InsufficientQuota("rule", nil), dialogue.RateLimited("limit", 0, nil), dialogue.ModerationBlocked(nil),
		dialogue.Internal(cause), dialogue.BadUpstream("rule"), dialogue.UpstreamReset(cause),
		dialogue.UpstreamUnreachable(cause, false), dialogue.UpstreamAuth(cause), dialogue.Incomplete(),
		dialogue.UpstreamTimeout(cause), dialogue.NoRoute(0, nil), dialogue.CancelledByOperator(),
		dialogue.StorageUnavailable("store", cause), dialogue.ShuttingDown(nil),
		dialogue.PoolRefused("requests", "", false),
		dialogue.PoolRefused("requests", "", true),
	} {
		c := codes[e.Code.(string)]
		// SDKs retry these statuses unless a header says otherwise.
		again := e.Status == 408 || e.Status == 429 || e.Status >= 500
		if c.Status != strconv.Itoa(e.Status) || c.Retry != (e.Retry || again && !e.NoRetry) {
			t.Errorf("%+v is described as %+v", e, c)
		}
	}
}
