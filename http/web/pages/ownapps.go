package pages

import "time"

// OwnApp is an app that the user has registered, with counts of the users who have allowed it. It names none of them.
type OwnApp struct {
	App
	ID        int64
	ClientID  string
	Addresses []string
	Created   time.Time
	Disabled  bool // by the operator
	Secret    AppSecret
	Previous  *AppSecret // the secret before the last rotation while it is accepted, or nil

	Users, Devices int64
	First, Latest  time.Time // of the authorizations that are in force
	ByScope        []ScopeUse
}

// AppSecret describes a secret by its last characters.
type AppSecret struct {
	End   string    // "": it is from before they were kept
	Used  time.Time // zero: never
	Until time.Time // when it ends, if it is not the newest
}

// ScopeUse is the number of users who have allowed an app a scope.
type ScopeUse struct {
	ScopeText
	Users int64
}

// AppEntry is the form of an app's settings as it was typed.
type AppEntry struct {
	Form
	Name, Description, Addresses string
	Open                         bool // the form is shown unfolded
}

// OneApp is the page on which a user changes an app.
type OneApp struct {
	Viewer
	OwnApp
	Entry AppEntry
}

func (o *OneApp) frame() frame { return o.at(placeApps, "ownapp.html", o.Name) }

// SecretApp shows the credentials of a new app, whose page is at path.
func SecretApp(d Viewer, name, path, clientID, secret string) *Secret {
	return &Secret{Viewer: d, Title: "Your new app", Back: path, place: placeApps,
		Message: "These are the credentials of the app “" + name + "”. Copy them now: the secret is not shown again.",
		Labels: []Labelled{{ID: "client", Label: "client_id", Secret: clientID},
			{ID: "secret", Label: "client_secret", Secret: secret}}}
}

// SecretRotatedApp shows the new secret of an app. The old one is accepted until a time, or ends now if that is zero.
func SecretRotatedApp(d Viewer, name, path, clientID, secret string, until time.Time) *Secret {
	s := SecretApp(d, name, path, clientID, secret)
	old := "The old secret does not work any more."
	if !until.IsZero() {
		old = "The old secret works until " + formatTime(until) + "."
	}
	s.Title = "The new secret of your app"
	s.Message += " " + old
	return s
}
