package pages

import (
	"net/netip"
	"time"
)

// Account is the first page behind sign-in: what there is, and what was used.
type Account struct {
	Viewer
	Available int64 // micro-dollars, as the next
	Held      int64
	Spent     int64
	PerDay    int64 // the mean of the last 14 days
	Today     Use
	Budgets   []BudgetLine
	Recent    []RequestRow
	Usage     *Report
	Clients   []ClientSetting
}

// Runway returns a text that says how long the money lasts, or "" if nothing was spent or nothing is left.
func (a *Account) Runway() string {
	if a.PerDay <= 0 || a.Available <= 0 {
		return ""
	}
	const longest = 999 // days; a longer forecast says nothing
	days := a.Available / a.PerDay
	lasts := "about " + plural(days, "day")
	switch {
	case days == 0:
		lasts = "less than a day"
	case days > longest:
		lasts = "more than " + plural(longest, "day")
	}
	return lasts + " at your current rate of " + formatMoney(a.PerDay) + " a day"
}

// Top returns the models that cost most, as far as there is room for them.
func (a *Account) Top() []*Spender { return a.Usage.Rows[:min(len(a.Usage.Rows), maxColours)] }

// Part returns what a model cost in per cent of the model that cost most.
func (a *Account) Part(s *Spender) int64 {
	return percentOf(s.Total.Amount, a.Usage.Rows[0].Total.Amount)
}

func (a *Account) frame() frame {
	return a.at(placeAccount, "account.html", "Overview").with("hello.js", "usage.css", "")
}

// Key is a key in a list. Its secret is nowhere.
type Key struct {
	ID, Prefix, Name string
	User             string // whose it is, in lists of several users' keys
	UserPath         string // "": not a registered user
	Status           string // active, disabled, expired, revoked
	OperatorOnly     bool   // the operator disabled it, and only the operator can enable it
	ByLead           bool   // a lead of the user's group disabled it, and the user cannot enable it
	Unclaimed        bool   // a lead made it, and its user has not drawn a secret yet
	Scopes, Models   []string
	RPM, TPM, Slots  int64  // limits; 0: none
	Budget           int64  // micro-dollars; 0: none
	Window           string // of the budget: day, month, else all time
	AllowIPs         []string
	Spent            int64
	InWindow         int64 // spent of the budget
	Created, Expires time.Time
	PreviousUntil    time.Time // until when the secret before this one is accepted; zero: it is not
	RecordedUntil    time.Time // until when what it sends and is answered is kept; zero: it is not
	Use              KeyUse
}

// KeyUse is the use of a key in the last 7 days, by the log of requests.
type KeyUse struct {
	Requests int64
	Days     [7]int64  // of the requests, the last 24 hours at the end
	Last     time.Time // the hour of the last request; zero: there was none
	Now      bool      // that hour is the present one
	App      string    // the program that sent it, by its own account; "": unknown
	Path     string    // the address of the requests
}

// Spark returns the shape of a line through the days, or "" if there was no request.
func (u *KeyUse) Spark() string { return spark(u.Days[:]) }

// Live reports whether the key can be used, now or once it is enabled.
func (k *Key) Live() bool { return k.Status == "active" || k.Status == "disabled" }

// Percent returns how much of the budget is spent, at most 100.
func (k *Key) Percent() int64 { return percentOf(k.InWindow, k.Budget) }

// Level returns the class of a budget's meter: warm from 90 per cent, bad when the budget is used up, else "".
func (k *Key) Level() string { return levelOf(k.Percent()) }

// Active reports whether the key can be used now.
func (k *Key) Active() bool { return k.Status == "active" }

// Keys lists a user's keys and makes new ones.
type Keys struct {
	Viewer
	Limits    []Limits // what restricts the user
	Forbidden bool     // the user may not create keys
	Keys      []Key
	Entry     KeyEntry
	Logged    bool // the use of the keys is known
}

// KeyEntry is the form for a new key as it was typed.
type KeyEntry struct {
	Form                            Form // can be sent once
	Name                            string
	Scopes                          []Choice
	Models, AllowIPs                string
	RPM, TPM, Slots, Budget, Expiry string
	Window                          string
	// Open says whether the form is shown unfolded.
	Open bool
	// Was has the values of the form of a key that there is as they were drawn; "" in the form for a new key. A field
	// that still has that value is not changed. OnDisconnect is in this form only.
	Was, OnDisconnect string
	// Members are those whose key it can be, in the form of a lead.
	Members []GroupChoice
	// Prefix begins the ids of the fields, which differ from those of another form on the same page.
	Prefix string
}

// Choice is one of several that can be ticked.
type Choice struct {
	Name   string
	Ticked bool
}

func (k *Keys) frame() frame {
	return k.at(placeKeys, "keys.html", "API keys").with("dialog.js", "people.css", "")
}

// OneKey is the page on which a user changes a key. Where scripts run, the list of keys shows it as a dialog.
type OneKey struct {
	Viewer
	Key       Key
	Entry     KeyEntry
	Forbidden bool // the user may not change keys
	// Matched of all Models are those that the patterns of the key match.
	Matched, Models int
}

// Left returns how much of the budget is left.
func (o *OneKey) Left() int64 { return max(o.Key.Budget-o.Key.InWindow, 0) }

func (o *OneKey) frame() frame { return o.at(placeKeys, "key.html", "Edit "+o.Key.Name) }

// Apps lists the apps that a user has allowed, and those that the user has registered.
type Apps struct {
	Viewer
	Apps      []Allowed
	Own       []OwnApp
	Forbidden bool // the user may not register apps
	Entry     AppEntry
}

// Allowed is an app that may read a user's account.
type Allowed struct {
	App
	ID      int64
	Since   time.Time
	Used    time.Time // when it last got tokens; zero: it has not fetched any
	Devices int       // how many authorizations it has
}

func (a *Apps) frame() frame { return a.at(placeApps, "apps.html", "My apps") }

// DeveloperTokens lists a user's developer tokens and makes new ones.
type DeveloperTokens struct {
	Viewer
	Forbidden bool // the user may neither create tokens nor use them
	Tokens    []DeveloperToken
	FormID    string
	Name      string // as typed before
}

// DeveloperToken is one in a list.
type DeveloperToken struct {
	ID, Name         string
	Created, Revoked time.Time
}

func (d *DeveloperTokens) frame() frame {
	return d.at(placeTokens, "developers.html", "Developer tokens")
}

// Security changes the password and ends sessions.
type Security struct {
	Viewer
	Sessions []Session
	// SecondFactor is set if signing in takes a code, of which Recovery replacements are left. Demanded says that the
	// user cannot turn it off.
	SecondFactor, Demanded bool
	Recovery               int
	Identities             []Identity
	Providers              []Labelled // at which the user may link a person
	NewPasskey             *Ceremony  // nil: there are no passkeys
}

// Session is a login in a list.
type Session struct {
	ID                     string
	Browser, Address       string // "": unknown
	Known                  string // where an address of the internet is; "": the operator has no file that says so
	Created, Seen, Expires time.Time
	Current                bool
}

// Place returns the place of the address, as far as the address itself shows it: on the machine of the gateway or in a
// private network. For addresses of the internet it is the place in a file of the operator, because the gateway asks no
// other service about them.
func (s Session) Place() string {
	at, err := netip.ParseAddr(s.Address)
	switch at = at.Unmap(); {
	case err != nil:
		return ""
	case at.IsLoopback():
		return "the gateway's machine"
	case at.IsPrivate(), at.IsLinkLocalUnicast(), sharedAddresses.Contains(at):
		return "a private network"
	}
	return s.Known
}

// sharedAddresses are those of carriers, which networks of one's own use as well (RFC 6598).
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")

func (s *Security) frame() frame {
	f := s.at(placeSecurity, "security.html", "Security")
	if s.NewPasskey != nil {
		f.script = "passkey.js"
	}
	return f
}

// Secret shows what is shown once.
type Secret struct {
	Viewer
	Title   string
	Message string
	Secrets []string
	Labels  []Labelled      // several secrets that need a name each
	Mailed  []string        // the addresses to which links were mailed, which are not shown
	Clients []ClientSetting // how a key is used; nil: it is no key
	Back    string          // the page it came from
	place   place
}

// SecretKey shows a new key.
func SecretKey(d Viewer, name, secret string, clients []ClientSetting) *Secret {
	return &Secret{
		Viewer:  d,
		Title:   "Your new key",
		Message: "This is the key “" + name + "”. Copy it now: it is not shown again.",
		Secrets: []string{secret},
		Clients: clients,
		Back:    string(placeKeys),
		place:   placeKeys,
	}
}

// SecretRotatedKey shows the new secret of a key. The old one is accepted until a time, or ends now if that is zero.
func SecretRotatedKey(d Viewer, name, secret string, until time.Time, clients []ClientSetting) *Secret {
	s := SecretKey(d, name, secret, clients)
	s.Title = "The new secret of your key"
	s.Message = "This is the key “" + name + "” from now on. Copy it now: it is not shown again. "
	if until.IsZero() {
		s.Message += "The old secret does not work any more."
	} else {
		s.Message += "The old secret works until " + formatTime(until) + "."
	}
	return s
}

// SecretUserKey shows an administrator the secret of a new key of a user, whose page is at path.
func SecretUserKey(d Viewer, username, path, name, secret string, clients []ClientSetting) *Secret {
	return &Secret{
		Viewer: d,
		Title:  "A new key of " + username,
		Message: "This is the key “" + name + "”, paid from the account of " + username +
			". Copy it now: it is not shown again.",
		Secrets: []string{secret},
		Clients: clients,
		Back:    path,
		place:   placeUsers,
	}
}

// SecretPassword shows an administrator the first password of a new user, whose page is at path.
func SecretPassword(d Viewer, username, path, password string) *Secret {
	return &Secret{
		Viewer:  d,
		Title:   "The user was created",
		Message: "This is the password of " + username + ". Copy it now: it is not shown again.",
		Secrets: []string{password},
		Back:    path,
		place:   placeUsers,
	}
}

// Labelled is one of several secrets that are shown together.
type Labelled struct{ ID, Label, Secret string }

// Sent says what became of links: those that are shown, and the addresses to which the others were mailed. Failed says
// that a mail was not taken, so that its link is among those that are shown.
type Sent struct {
	Links  []Labelled
	Mailed []string
	Failed bool
}

// message returns what the page says about the links, of which each shown one is for its person.
func (s *Sent) message(life string) string {
	text := ""
	if s.Failed {
		text = "The mail server did not take every mail. "
	}
	switch {
	case len(s.Links) == 0:
		return "Each link works once, within " + life + "."
	case len(s.Links) == 1 && len(s.Mailed) == 0:
		return text + "Send the link over a channel that you trust. It works once, within " + life +
			". Copy it now: it is not shown again."
	}
	return text + "Send each link to its person over a channel that you trust. A link works once, within " + life +
		". Copy them now: they are not shown again."
}

// SecretInvitations shows an administrator, or a lead, what became of the links of new invitations.
func SecretInvitations(d Viewer, byLead bool, sent Sent) *Secret {
	here := placeUsers
	if byLead {
		here = placeLed
	}
	return &Secret{Viewer: d, Title: "The invitations", Labels: sent.Links, Mailed: sent.Mailed, Back: string(here),
		place: here, Message: sent.message("7 days")}
}

// SecretLink shows an administrator what became of the link with which a user, whose page is at path, chooses a
// password.
func SecretLink(d Viewer, username, path string, sent Sent) *Secret {
	return &Secret{Viewer: d, Title: "A link for " + username, Labels: sent.Links, Mailed: sent.Mailed, Back: path,
		place:   placeUsers,
		Message: "With the link " + username + " chooses a new password. " + sent.message("24 hours")}
}

// SecretToken shows a new developer token.
func SecretToken(d Viewer, name, token string) *Secret {
	return &Secret{
		Viewer:  d,
		Title:   "Your new developer token",
		Message: "This is the token “" + name + "”. Copy it now: it is not shown again.",
		Secrets: []string{token},
		Back:    string(placeTokens),
		place:   placeTokens,
	}
}

// SecretCodes shows new redeem codes.
func SecretCodes(d Viewer, codes []string, amount int64) *Secret {
	return &Secret{
		Viewer:  d,
		Title:   "New redeem codes",
		Message: "Each is worth $" + Dollars(amount) + " and works once. Copy them now: they are not shown again.",
		Secrets: codes,
		Back:    string(placeCodes),
		place:   placeCodes,
	}
}

func (s *Secret) frame() frame {
	return s.at(s.place, "secret.html", s.Title)
}

// Connect shows the settings of clients.
type Connect struct {
	Viewer
	Address string // scheme://host[:port]
	Clients []ClientSetting
	Logged  bool        // there is a log of requests
	Last    *RequestRow // the last request with a key, or nil
}

func (c *Connect) frame() frame {
	f := c.at(placeConnect, "connect.html", "Connect")
	if c.Logged {
		f.script = "fresh.js"
	}
	return f
}

// SignOut asks whether to sign out.
type SignOut struct{ Viewer }

func (s *SignOut) frame() frame { return s.at("", "signout.html", "Sign out").with("", "", slim) }

// Missing is the page behind sign-in that is not there.
type Missing struct{ Viewer }

func (m *Missing) frame() frame { return m.at("", "missing.html", "Not found").with("", "", slim) }
