package portal

import (
	"net/http"
	"sync"
	"time"

	"stagedoor/http/envelope"
	"stagedoor/http/web/pages"
)

// maxChanges is the number of changes of keys, tokens and apps that one user makes in a changeWindow. Each of them
// leaves a record in the audit log for a long time, and a person makes far fewer.
const (
	maxChanges   = 60
	changeWindow = time.Minute
)

// changeCounts counts the changes of each user in the current window. It holds one number for each user who has made
// one in that time. Any goroutine may use it.
type changeCounts struct {
	most   int // of one user in a window
	window time.Duration

	mu    sync.Mutex
	since time.Time
	made  map[int64]int
}

// admit counts a change of the user, and reports false if the user has made too many.
func (c *changeCounts) admit(user int64, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= c.window {
		c.since, c.made = now, map[int64]int{}
	}
	if c.made[user] >= c.most {
		return false
	}
	c.made[user]++
	return true
}

// limited serves a form whose changes are recorded, at most maxChanges times in a changeWindow for each user. It does
// not limit administrators, who change many keys in a row. What a user needs against a thief who has a session
// (passwords, sessions, the second factor) must not be limited in this way, or the thief could keep the user from it.
func limited(serve func(*requestContext)) func(*requestContext) {
	return func(rc *requestContext) {
		if !rc.user.Admin && !rc.changes.admit(rc.user.ID, rc.options.Now()) {
			envelope.SetRetryAfter(rc.w.Header(), changeWindow)
			rc.show(http.StatusTooManyRequests, &pages.Failure{Title: "Too many changes in a minute",
				Message: "Nothing was changed. Wait a little and try again."})
			return
		}
		serve(rc)
	}
}
