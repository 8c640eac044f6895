package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
)

// A refuser returns the reply to a request that net/http could not read, for the status and the reason that it gives.
type refuser func(status int, reason string) []byte

// unreadable returns the status and the reason of an error that net/http has written itself in p, because it could not
// read a request and so called no handler. ok is false for any other reply: those of handlers have a request id.
func unreadable(p []byte) (status int, reason string, ok bool) {
	const version = "HTTP/1.1 "
	head, _, whole := bytes.Cut(p, []byte("\r\n\r\n"))
	if !whole || !bytes.HasPrefix(head, []byte(version)) || len(head) < len(version)+3 || head[len(version)] < '4' ||
		bytes.Contains(head, []byte("\r\nX-Request-Id: ")) {
		return 0, "", false
	}
	line, _, _ := bytes.Cut(head[len(version):], []byte("\r\n"))
	status, err := strconv.Atoi(string(line[:3]))
	_, reason, _ = strings.Cut(string(line), ": ")
	return status, reason, err == nil
}

// refuseUnread is a refuser. The connection is closed after its reply. The path of the request is not known, so the
// error has the form of the routes that belong to no shape.
func (s *Server) refuseUnread(status int, reason string) []byte {
	body, id := envelope.Plain(unreadError(status, reason)), []string{"req_" + s.options.ID()}
	reply := &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		Header:        http.Header{"Content-Type": {"application/json"}, "X-Request-Id": id, "Request-Id": id},
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}
	if s.options.HTTPS {
		reply.Header["Strict-Transport-Security"] = hsts
	}
	var out bytes.Buffer
	_ = reply.Write(&out) // does not fail on memory
	return out.Bytes()
}

// unreadError returns the error of a request that net/http could not read.
func unreadError(status int, reason string) *dialogue.Error {
	message := "the request is not valid HTTP"
	switch {
	case status == http.StatusRequestHeaderFieldsTooLarge:
		return tooManyHeaders(fmt.Sprintf("the header of the request is longer than %d KiB", maxHeader>>10))
	case status == http.StatusExpectationFailed:
		message = "Expect: must be 100-continue"
	case status == http.StatusNotImplemented:
		message = "Transfer-Encoding: must be chunked"
	case reason != "":
		message += ": " + reason
	}
	return dialogue.Refusal(status, "malformed_request", message)
}

// tooManyHeaders returns the 431 of a request with too much of a header.
func tooManyHeaders(message string) *dialogue.Error {
	return dialogue.Refusal(http.StatusRequestHeaderFieldsTooLarge, "too_many_headers", message)
}
