package pages

import (
	"net/url"
	"strings"
	"time"
)

// PathAuthorize is the path with which apps begin the sign-in of their users.
const PathAuthorize = "/api/oauth2/authorize"

// Form holds the data of every form besides its fields.
type Form struct {
	Action string
	ID     string // what it is about, such as a sealed request, or a random id with which it can be sent once only
	Token  string // proves that the form was made for this browser
}

// App describes an app to the people whom it asks for access.
type App struct {
	Name        string
	Description string
	Host        string // where the browser goes afterwards
	Loopback    bool   // that is this computer, without TLS
	Scopes      []string
	Logo        string // the address of the picture, or "" if the app has none
}

// leads returns where the forms of the page may lead: to the app in a browser, or to a program on this machine.
func (a *App) leads() leads {
	if a.Loopback {
		return toPrograms
	}
	return toApps
}

// SignIn asks for credentials. With an app it names the app, where it is and what
// it asks for.
type SignIn struct {
	Form
	App *App
	// Consents says that signing in also grants the app its access, because no page asks for it afterwards (decisions,
	// auto_authorize).
	Consents bool
	Host     string // the gateway's, "" with an app, whose own host the page names
	Username string // as typed before
	// Halfway is the sealed login whose code the form asks for in place of the password; "": it asks for the password.
	Halfway string
	Next    string // where to go on, without an app
	Offers  []Offer
	Passkey *Passkey // nil: there is no sign-in with passkeys
	Notice  string
	Problem string
}

// frame returns the frame of the page. Its forms may redirect to the app for which the user signs in.
func (s *SignIn) frame() frame {
	f := frame{template: "signin.html", title: "Sign in", style: "signin.css", leads: toSelf}
	if s.Passkey != nil && s.Halfway == "" {
		f.script = "passkey.js"
	}
	if s.App != nil {
		f.leads = s.App.leads()
	} else if next, err := url.Parse(s.Next); err == nil && next.Path == PathAuthorize {
		// After an earlier consent the form's redirects lead through authorize to the app.
		f.leads = (&App{Loopback: strings.HasPrefix(next.Query().Get("redirect_uri"), "http:")}).leads()
	}
	return f
}

// Consent asks whether an app may have what it asks for.
type Consent struct {
	Form
	App      App
	Username string
	// Owner is the user who registered the app, and Users the number of users who have allowed it.
	Owner      string
	Registered time.Time
	Users      int
}

func (c *Consent) frame() frame {
	return frame{template: "consent.html", title: "Allow access", visitor: c.Username, leads: c.App.leads()}
}
