package browser

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"stagedoor/actors/tokens"
)

// device is sealed in a cookie and lists the accounts that signed in on a browser. It outlives
// the session and gives no access. It only says that guesses of strangers do not count
// against this browser (OWASP's device cookies).
type device struct {
	ID    string   `json:"i"`
	Users []string `json:"u"` // in lower case, the last first
}

const (
	deviceCookie  = "device"
	purposeDevice = "device"
	deviceLife    = 180 * 24 * time.Hour
	deviceUsers   = 5
)

// device returns the device of a browser, or an empty one if its cookie is missing or forged.
func (g *Guard) device(r *http.Request) device {
	var d device
	if c, err := r.Cookie(g.CookieName(deviceCookie)); err == nil && g.Unseal(purposeDevice, nil, c.Value, &d) != nil {
		return device{}
	}
	return d
}

// knows reports whether the account has been signed in to in this browser.
func (d *device) knows(username string) bool {
	return slices.Contains(d.Users, strings.ToLower(username))
}

// remember marks the browser as one that has signed in to the account. A failure costs the
// user nothing but the mark.
func (g *Guard) remember(w http.ResponseWriter, d device, user *tokens.User) {
	if d.ID == "" {
		var err error
		if d.ID, err = g.NewID(); err != nil {
			return
		}
	}
	name := strings.ToLower(user.Username)
	d.Users = append(
		[]string{name},
		slices.DeleteFunc(slices.Clone(d.Users), func(u string) bool { return u == name })...)
	d.Users = d.Users[:min(len(d.Users), deviceUsers)]
	if sealed, err := g.Seal(purposeDevice, nil, deviceLife, d); err == nil {
		http.SetCookie(w, g.Cookie(deviceCookie, sealed, deviceLife))
	}
}
