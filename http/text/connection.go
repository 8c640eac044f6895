package text

import (
	"context"
	"encoding/json"
	"net/http"

	"stagedoor/providers/shapes/responses"
)

// Connection lets a request for a response use a connection that remembers responses which are not stored. The
// connection of http/responsesocket passes one with each of its requests, which are otherwise handled like any request
// to POST /v1/responses. A background response does not use it.
type Connection struct {
	// WarmUp makes the reply an empty response. Nothing is sent to a provider and nothing is charged, but all
	// checks and the key's request rate apply.
	WarmUp bool
	// Recall returns the input and the output of a response that the connection remembers. Such a response is
	// preferred to a stored one with the same id.
	Recall func(id string) (history []json.RawMessage, ok bool)
	// Keep receives the whole input of a request that is not stored, including the history before it. Keep is not
	// called if the gateway does not know the history. The items are valid until Keep returns.
	Keep func(input []json.RawMessage)
}

type connectionKey struct{}

// On returns a copy of r that has arrived on the connection.
func (c *Connection) On(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), connectionKey{}, c))
}

// attach finds the connection on which the request arrived, if the shape stores replies. A request that only warms the
// connection up may have no input.
func (rc *requestContext) attach() {
	if !rc.shape.Traits.StoresReplies {
		return
	}
	rc.connection, _ = rc.r.Context().Value(connectionKey{}).(*Connection)
	rc.in.NoInput = rc.warmsUp()
}

// warmsUp reports whether the reply is an empty response.
func (rc *requestContext) warmsUp() bool { return rc.connection != nil && rc.connection.WarmUp }

// remembered reports whether the connection remembers the response. The gateway then needs the whole conversation
// and cannot leave it to the provider that has stored the beginning.
func (rc *requestContext) remembered() bool {
	return rc.connection != nil && (!rc.head.Store || rc.connection.WarmUp)
}

// recall puts what the connection remembers of the previous response before the input. A response that is stored
// then contains all of it, because the store does not have the previous response.
func (rc *requestContext) recall() {
	if rc.connection == nil || rc.head.PreviousResponseID == "" {
		return
	}
	history, ok := rc.connection.Recall(rc.head.PreviousResponseID)
	if !ok {
		return
	}
	if responses.IsTranscript(rc.payload) {
		history = nil // the input has the whole conversation already
	}
	rc.payload = responses.Prepend(rc.payload, history)
	rc.head.PreviousResponseID = ""
}

// remember passes the whole input to the connection. previous is the stored response whose history continueFrom has
// put before the input. whole is false if a provider has a part of the conversation that the gateway does not know.
func (rc *requestContext) remember(previous string) (whole bool) {
	whole = rc.head.PreviousResponseID == previous
	if whole && rc.remembered() {
		rc.connection.Keep(responses.Items(rc.payload))
	}
	return whole
}

// warmUp replies with an empty response. whole is false if the next request could not continue from it.
func (rc *requestContext) warmUp(whole bool) {
	defer rc.body.free()
	if !whole {
		rc.refuse(previousNotFound())
		return
	}
	rc.note(nil)
	rc.trace(nil)
	// A client that has left needs no reply.
	_ = rc.begin().Send(responses.WarmedUp(rc.payload, "resp_"+rc.handlers.Env.ID(), rc.handlers.Env.Now()))
}
