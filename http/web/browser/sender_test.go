package browser

import "testing"

func TestAgentsAreDescribedForPeople(t *testing.T) {
	const mozilla, webkit = "Mozilla/5.0 (", "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 "
	for header, want := range map[string]string{
		"": "", "<script>": "", "curl/8.5.0": "curl 8", "Firefox/": "Firefox", "Firefox/99999999999": "Firefox 9999",
		mozilla + "Windows NT 10.0; Win64) " + webkit + "Safari/537.36 Edg/140.0": "Edge 140 on Windows",
		mozilla + "X11; Linux x86_64) HeadlessChrome/140.0.0.0 Safari/537.36":     "Chrome 140 on Linux",
		mozilla + "Linux; Android 10; K) " + webkit + "Mobile Safari/537.36":      "Chrome 140 on Android",
		mozilla + "iPhone; CPU iPhone OS 18_6 like Mac OS X) Version/18.6":        "Safari 18 on iPhone",
		mozilla + "Macintosh; Intel Mac OS X 10.15; rv:143.0) Firefox/143.0":      "Firefox 143 on macOS",
	} {
		if got := describeAgent(header); got != want {
			t.Errorf("%q is %q, want %q", header, got, want)
		}
	}
}
