package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/mail"
	"slices"
	"strings"

	"stagedoor/actors/webhook"
	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/work"
)

// Webhook describes a server to which events are posted.
type Webhook struct {
	URL    Secret  `yaml:"url" doc:"address that events are posted to, https://host/path" required:"true"`
	Secret Secret  `yaml:"secret" doc:"secret for the signature: whsec_ and 24 to 64 random bytes in base64" required:"true"`
	Events Strings `yaml:"events" doc:"events to post; default: all" enum:"video.completed,video.failed"`
	User   string  `yaml:"user" doc:"user whose events are posted; without user and key, the events of all users"`
	Key    string  `yaml:"key" doc:"name of a key of keys, without a user, whose events are posted"`
	Allow  Strings `yaml:"allow_networks" doc:"private networks in which the endpoint may be, for example 10.1.0.0/16"`
}

// Alerts describes where alerts go: a server to which they are posted, and a person who gets mails.
type Alerts struct {
	URL    Secret  `yaml:"url" doc:"address that alerts are posted to, https://host/path; none: alerts are not posted"`
	Mail   string  `yaml:"mail" doc:"mail address for alerts, by the server of smtp; none: no mails"`
	Secret Secret  `yaml:"secret" doc:"secret for the signature: whsec_ and 24 to 64 random bytes in base64"`
	Events Strings `yaml:"events" doc:"alerts to send; default: all" enum:"@alerts"`
	Allow  Strings `yaml:"allow_networks" doc:"private networks in which the endpoint may be, for example 10.1.0.0/16"`
}

// Recipients returns the host and the mail address to which alerts go, for a page, or "" if there are none.
func (a *Alerts) Recipients() string {
	var all []string
	if u := webAddress(a.URL.Reveal()); u != nil {
		all = append(all, u.Host)
	}
	if a.Mail != "" {
		all = append(all, a.Mail)
	}
	return strings.Join(all, " and ")
}

// endpoints returns the endpoints to which alerts are sent: the server, the person, both or none. Their ids stay the
// same as long as the addresses do.
func (a *Alerts) endpoints() (all []webhook.Endpoint) {
	for _, to := range []Secret{a.URL, Secret(a.Mail)} {
		if to != "" {
			w := Webhook{URL: to, Secret: a.Secret, Events: a.Events, Allow: a.Allow}
			e := w.endpoint()
			e.ID, e.Alerts = strings.Replace(e.ID, "wh_", "wha_", 1), true
			all = append(all, e)
		}
	}
	if a.Mail != "" {
		all[len(all)-1].Mail = a.Mail
	}
	return all
}

// checkAlerts checks where alerts go. Settings without an address are a mistake, because their operator expects alerts
// and would get none.
func (c *Config) checkAlerts(d *decoder) {
	a := &c.Alerts
	if a.Mail != "" {
		at, err := mail.ParseAddress(a.Mail)
		switch {
		case err != nil || at.Address != a.Mail:
			d.at("alerts.mail", "expected an address without a name, for example ops@example.com")
		case c.SMTP.Host == "":
			d.at("alerts.mail", "expected the setting smtp, without which no mails are sent")
		}
	}
	if a.URL == "" {
		if a.Secret != "" || a.Allow != nil || a.Events != nil && a.Mail == "" {
			d.at("alerts", "expected url, without which no alerts are posted")
		}
		return
	}
	if !postable(a.URL.Reveal()) {
		d.at("alerts.url", "expected an address without user and fragment, for example https://app.example.com/hooks")
	}
	if _, err := webhook.ParseSecret(a.Secret.Reveal()); err != nil {
		d.at("alerts.secret", "%v", err)
	}
	checkNetworks(d, "alerts.allow_networks", a.Allow)
}

// Endpoints returns the endpoints of the webhooks and of the alerts, for the sender of events.
func (c *Config) Endpoints() []webhook.Endpoint {
	var out []webhook.Endpoint
	for _, w := range c.Webhooks {
		out = append(out, w.endpoint())
	}
	return append(out, c.Alerts.endpoints()...)
}

// endpoint returns the endpoint of the webhook, for the sender of events.
func (w *Webhook) endpoint() webhook.Endpoint {
	key, _ := webhook.ParseSecret(w.Secret.Reveal()) // checked when the file was read
	networks, _ := identity.ParseNetworks(w.Allow)
	return webhook.Endpoint{Webhook: work.Webhook{ID: w.id(), Owner: w.owner(), Types: w.Events}, URL: w.URL.Reveal(),
		Key: key, Allow: networks}
}

// Subscriptions returns the webhooks for the state, which stores a delivery for each of them that wants an event.
func (c *Config) Subscriptions() []work.Webhook {
	var out []work.Webhook
	for _, e := range c.Endpoints() {
		out = append(out, e.Webhook)
	}
	return out
}

// owner returns the user or the key whose events the webhook gets, or "" for all users.
func (w *Webhook) owner() state.Owner {
	switch {
	case w.User != "":
		return state.OwnerOf("", w.User)
	case w.Key != "":
		return state.OwnerOf(fixedKeyID(w.Key), "")
	}
	return ""
}

// id returns an id that is derived from the address and the owner alone. Events that wait for delivery therefore keep
// their webhook over restarts, changed secrets and changes of its place in the file.
func (w *Webhook) id() string {
	sum := sha256.Sum256([]byte(string(w.owner()) + "\n" + w.URL.Reveal()))
	return "wh_" + hex.EncodeToString(sum[:8])
}

// checkWebhooks checks every webhook. Two with the same address and owner would be one endpoint with two secrets.
func (c *Config) checkWebhooks(d *decoder) {
	if len(c.Webhooks) > webhook.MaxEndpoints {
		d.at("webhooks", "expected at most %d", webhook.MaxEndpoints)
	}
	seen := make(map[string]bool)
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		path := fmt.Sprintf("webhooks[%d]", i)
		if w.URL != "" && !postable(w.URL.Reveal()) {
			d.at(path+".url", "expected an address without user and fragment, for example https://app.example.com/hooks")
		}
		if w.URL != "" && seen[w.id()] {
			d.at(path+".url", "is another webhook's for the same events, expected one of its own")
		}
		seen[w.id()] = true
		if _, err := webhook.ParseSecret(w.Secret.Reveal()); w.Secret != "" && err != nil {
			d.at(path+".secret", "%v", err)
		}
		c.checkWebhookOwner(d, path, w)
		checkNetworks(d, path+".allow_networks", w.Allow)
	}
}

// checkWebhookOwner checks that the events of a webhook are those of a user or of a key without one. A key with a
// user has no events of its own: they are its user's.
func (c *Config) checkWebhookOwner(d *decoder, path string, w *Webhook) {
	if w.Key == "" {
		return
	}
	if w.User != "" {
		d.at(path+".key", "expected either user or key")
		return
	}
	i := slices.IndexFunc(c.Keys, func(k Key) bool { return k.Name == w.Key })
	switch {
	case i < 0:
		names := make([]string, len(c.Keys))
		for i, k := range c.Keys {
			names[i] = k.Name
		}
		d.at(path+".key", "%q is no key of this file%s", w.Key, cli.DidYouMean(w.Key, names))
	case c.Keys[i].User != "":
		d.at(path+".key", "%q belongs to a user, expected user: %s instead", w.Key, c.Keys[i].User)
	}
}

// postable reports whether events can be posted to an address.
func postable(address string) bool {
	u := webAddress(address)
	return u != nil && u.User == nil && !strings.Contains(address, "#")
}
