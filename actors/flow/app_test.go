package flow

import (
	"net/http"
	"testing"
)

func TestAnAppIsWhatAClientCallsItself(t *testing.T) {
	for _, c := range []struct{ agent, title, want string }{
		{"claude-cli/2.1 (external, cli)", "", "claude-cli"}, {"OpenAI/Python 2.0", "", "OpenAI"},
		{"Mozilla/5.0 (X11)", "", "browser"}, {"curl/8", " My app ", "My app"}, {"", "", ""}, {"a\x00b", "", "ab"},
	} {
		if got := AppOf(http.Header{"User-Agent": {c.agent}, "X-Title": {c.title}}); got != c.want {
			t.Errorf("%+v is %q", c, got)
		}
	}
	if AppOf(nil) != "" || len(AppOf(http.Header{"User-Agent": {string(make([]byte, 999)) + "x"}})) != 0 {
		t.Error("an app without a name has one")
	}
}
