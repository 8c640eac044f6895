package browser

import (
	"net/http"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/auth"
)

// senderOf returns where a request came from, for the list of sessions.
func senderOf(r *http.Request) tokens.Sender {
	return tokens.Sender{Address: auth.Remote(r), Browser: describeAgent(r.UserAgent())}
}

// agents and systems are marks of User-Agent headers with the names that people know. Browsers name their relatives, so
// the first mark that is found counts.
var (
	agents = [][2]string{{"Edg/", "Edge"}, {"EdgA/", "Edge"}, {"OPR/", "Opera"},
		{"SamsungBrowser/", "Samsung Internet"}, {"FxiOS/", "Firefox"}, {"Firefox/", "Firefox"}, {"CriOS/", "Chrome"},
		{"HeadlessChrome/", "Chrome"},
		{"Chrome/", "Chrome"}, {"Version/", "Safari"}, {"curl/", "curl"}}
	systems = [][2]string{{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"},
		{"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

// describeAgent returns the browser and the system of a User-Agent header, such as "Firefox 143 on Linux". Whatever it
// does not know is left out, so that nothing of the header itself but a number is shown.
func describeAgent(header string) string {
	var browser, system string
	for _, a := range agents {
		if _, after, ok := strings.Cut(header, a[0]); ok {
			end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
			if end < 0 {
				end = len(after)
			}
			browser = strings.TrimSpace(a[1] + " " + after[:min(end, 4)])
			break
		}
	}
	for _, s := range systems {
		if strings.Contains(header, s[0]) {
			system = s[1]
			break
		}
	}
	switch {
	case browser == "":
		return system
	case system == "":
		return browser
	}
	return browser + " on " + system
}
