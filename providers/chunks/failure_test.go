package chunks_test

import (
	"fmt"
	"strings"
	"testing"

	"stagedoor/providers/chunks"
)

func TestDecodeErrorReadsEveryForm(t *testing.T) {
	rows := []struct {
		status              int
		body                string
		message, kind, code string
	}{
		{400, `{"error":{"message":"m","type":"t","param":"p","code":"c"}}`, "m", "t", "c"},
		{
			404,
			`{"error":{"message":"m","type":"not_found_error","param":null,"code":404}}`,
			"m",
			"not_found_error",
			"404",
		},
		{429, `{"error":"busy"}`, "busy", "rate_limit_error", "<nil>"},
		{400, `{"message":"m"}`, "m", "invalid_request_error", "<nil>"},
		{422, `{"detail":"d"}`, "d", "invalid_request_error", "<nil>"},
		{400, `{"error":null,"message":"m"}`, "m", "invalid_request_error", "<nil>"},
		{
			422,
			`{"detail":[{"loc":["body","messages",0,"x"],"msg":"not permitted","input":"secret"},` +
				`{"msg":"second"},{"x":1}]}`,
			"body.messages.0.x: not permitted; second",
			"invalid_request_error",
			"<nil>",
		},
		{
			422,
			`{"object":"error","message":{"detail":[{"loc":["body","n"],"msg":"too large"}]},"type":"t"}`,
			"body.n: too large",
			"t",
			"<nil>",
		},
		{400, `[{"error":{"message":"m","code":400}}]`, "m", "invalid_request_error", "400"},
		{502, `<html>secret host</html>`, "the upstream provider returned status 502", "api_error", "<nil>"},
		{529, ``, "the upstream provider returned status 529", "overloaded_error", "<nil>"},
		{
			500,
			`"` + strings.Repeat("x", 70<<10) + `"`,
			"the upstream provider returned status 500",
			"api_error",
			"<nil>",
		},
	}
	for _, row := range rows {
		e := chunks.DecodeError(row.status, nil, []byte(row.body))
		code := fmt.Sprintf("%s", e.Code)
		if e.Code == nil {
			code = "<nil>"
		}
		if e.Status != row.status || e.Message != row.message || e.Type != row.kind || code != row.code {
			t.Errorf("%.60s: got %d %q %q %q", row.body, e.Status, e.Message, e.Type, code)
		}
	}
	if e := chunks.DecodeError(
		400,
		nil,
		[]byte(`{"error":{"message":"`+strings.Repeat("é", 3000)+`"}}`),
	); len(e.Message) > 2<<10+3 {
		t.Errorf("message of %d bytes", len(e.Message))
	}
}
