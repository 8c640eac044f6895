package tokens

import "time"

// Config sets lifetimes. The zero value gives those of the specification.
type Config struct {
	Code    time.Duration // of an authorization code; 0 means 60 s
	Access  time.Duration // of an access token; 0 means 7200 s
	Refresh time.Duration // of a refresh token, from each rotation; 0 means 30 days
	// RefreshGrace is the time in which a refresh token that was just used returns the same successor once
	// more, unless the successor was used. It saves the login of a client that lost the reply. 0 turns it off.
	RefreshGrace time.Duration
	// Consent is the time in which an approval lets the same app get further grants without the page; 0 means
	// 90 days.
	Consent time.Duration
	Session time.Duration // of a login in a browser; 0 means 14 days
}

// withDefaults returns the lifetimes with the specification's where none are given. A grace of refresh tokens may be
// 0.
func (c Config) withDefaults() Config {
	const day = 24 * time.Hour
	setDefault(&c.Code, time.Minute)
	setDefault(&c.Access, 7200*time.Second)
	setDefault(&c.Refresh, 30*day)
	setDefault(&c.Consent, 90*day)
	setDefault(&c.Session, 14*day)
	c.RefreshGrace = max(c.RefreshGrace, 0)
	return c
}

// setDefault replaces a duration that was not given.
func setDefault(d *time.Duration, to time.Duration) {
	if *d <= 0 {
		*d = to
	}
}
