package main

import (
	"net/http"
	"time"

	"stagedoor/http/live"
	"stagedoor/http/web/browser"
)

// liveHandlers returns the handlers of event streams and websockets. issuer is the
// gateway's address in browsers.
func (g *gateway) liveHandlers(issuer string) *live.Handlers {
	o := live.Options{Logger: g.logger, State: g.state, Auth: g.auth, Limits: g.runtime.Keys(), Watchers: g.watchers,
		Origin: issuer, Now: time.Now}
	if g.browser != nil {
		o.Sessions = members{g.browser}
	}
	return live.New(o)
}

// members are the people who are signed in. Keys name a user by username, and so
// do jobs.
type members struct{ guard *browser.Guard }

// Member implements live.Sessions.
func (m members) Member(r *http.Request) (string, error) {
	v, err := m.guard.Visitor(r)
	if err != nil || !v.SignedIn() {
		return "", err
	}
	return v.Session.User.Username, nil
}
