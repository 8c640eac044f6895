package upstream

import "testing"

func TestTheVersionIsInTheAddressOnce(t *testing.T) {
	for _, tc := range []struct{ base, path, want string }{
		{"", "/v1/messages", "/v1/messages"},
		{"/v1", "/v1/messages", "/v1/messages"},
		{"/anthropic", "/v1/messages", "/anthropic/v1/messages"},
		{"/anthropic/v1", "/v1/messages", "/anthropic/v1/messages"},
		{"/v1", "/chat/completions", "/v1/chat/completions"},
		{"/v1beta", "/v1beta/models/m:generateContent", "/v1beta/models/m:generateContent"},
		{"/v1", "/v1beta/models/m:generateContent", "/v1/v1beta/models/m:generateContent"},
	} {
		if got := join(tc.base, tc.path); got != tc.want {
			t.Errorf("%q and %q make %q, want %q", tc.base, tc.path, got, tc.want)
		}
	}
}
