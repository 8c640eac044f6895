package tokens

import "time"

// Config is how long things live. The zero value is what the specification says.
type Config struct {
	Code    time.Duration // an authorization code; 0: 60 s
	Access  time.Duration // an access token; 0: 7200 s
	Refresh time.Duration // a refresh token, anew with every rotation; 0: 30 days
	// RefreshGrace is how long a refresh token that was just used gets its
	// successor once more, if nobody used that yet, so that a client whose answer
	// was lost keeps its login. 0: never.
	RefreshGrace time.Duration
	// Consent is how long an approval lets the same app ask again without the
	// page; 0: 90 days.
	Consent time.Duration
	Session time.Duration // a login in a browser; 0: 14 days
	// SecretOverlap is how long an app's old secret works beside a new one; 0:
	// 24 hours.
	SecretOverlap time.Duration
}

func (c Config) withDefaults() Config {
	const day = 24 * time.Hour
	setDefault(&c.Code, time.Minute)
	setDefault(&c.Access, 7200*time.Second)
	setDefault(&c.Refresh, 30*day)
	setDefault(&c.Consent, 90*day)
	setDefault(&c.Session, 14*day)
	setDefault(&c.SecretOverlap, day)
	c.RefreshGrace = max(c.RefreshGrace, 0)
	return c
}

func setDefault(d *time.Duration, to time.Duration) {
	if *d <= 0 {
		*d = to
	}
}
