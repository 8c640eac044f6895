package pages

import "time"

// Offer is a provider at which people can sign in.
type Offer struct {
	Form
	Label, Next string
}

// Ceremony is a challenge for a device with passkeys: the options for the browser, and the challenge sealed.
type Ceremony struct{ Options, Challenge string }

// Passkey is the form with which a device signs in.
type Passkey struct {
	Form
	Ceremony
	Next string
}

// Identity is a person at a provider as whom a user signs in, or a passkey.
type Identity struct {
	ID, Label     string
	Created, Seen time.Time
	Name          string // of a passkey, which its user can change; "": it is none
}

// Leave leads to a provider. Its reply has a Refresh header, and its link is for browsers that ignore that. For a user
// who is SignedOut here it has none and leads to the page on which people sign out there.
type Leave struct {
	Label, Address string
	SignedOut      bool
}

func (l *Leave) frame() frame {
	if l.SignedOut {
		return frame{template: "leave.html", title: "You are signed out", leads: nowhere}
	}
	return frame{template: "leave.html", title: "Sign in with " + l.Label, leads: nowhere}
}
