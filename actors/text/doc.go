// Package text makes the attempts of a request for text. It implements engine.Exchange; actors/engine owns the
// request, its retries and its end.
//
// An attempt calls an upstream and delivers its reply as chunks. A request whose provider speaks the client's
// shape (API format) is passed through (passthrough.go): bytes are patched on the way out and watched on the way back.
// Any other goes through the dialogue (translated.go). Nothing is sent to the client before the first piece of answer
// has been read, so everything that fails until then is still a real status, another attempt or another target. One
// failure is no status for a client that streams: that which the upstream itself reports in a stream that it has begun
// (attempt.opening).
package text
