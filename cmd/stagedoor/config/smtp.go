package config

import (
	"net/mail"
	"net/netip"
	"strings"

	"stagedoor/http/web/mailer"
)

// SMTP is the server that takes the gateway's mails.
type SMTP struct {
	Host     string `yaml:"host" doc:"host of the mail server; none: no mails are sent, and pages show the links"`
	Port     int    `yaml:"port" doc:"port of the mail server; default: 465 if tls is implicit, else 587"`
	TLS      string `yaml:"tls" doc:"encryption: STARTTLS, TLS from the start of the connection, or none" enum:"starttls,implicit,none"`
	User     string `yaml:"user" doc:"user name at the mail server; none: no authentication"`
	Password Secret `yaml:"password" doc:"the password of user, for example ${SMTP_PASSWORD}"`
	From     string `yaml:"from" doc:"the sender of the mails, an address with or without a name"`
}

// check checks the mail server. Settings without a host are a mistake, because their operator expects mails and would
// get none.
func (s *SMTP) check(d *decoder) {
	if s.Host == "" {
		if s.Port != 0 || s.User != "" || s.Password != "" || s.From != "" {
			d.at("smtp", "expected host, without which no mails are sent")
		}
		return
	}
	if _, err := netip.ParseAddr(s.Host); err != nil && strings.ContainsAny(s.Host, ":/@ ") {
		d.at("smtp.host", "expected a host without port, for example smtp.example.com")
	}
	if s.Port < 0 || s.Port > 65535 {
		d.at("smtp.port", "expected 1 to 65535")
	}
	if from, err := mail.ParseAddress(s.From); err != nil || !strings.Contains(from.Address, "@") {
		d.at("smtp.from", "expected an address, for example Stagedoor <gateway@example.com>")
	}
	if (s.User == "") != (s.Password == "") {
		d.at("smtp.password", "expected user and password, or neither")
	}
	switch ip, err := netip.ParseAddr(s.Host); {
	case s.TLS != mailer.None || s.Host == "localhost" || err == nil && ip.IsLoopback():
	case s.User != "":
		d.at("smtp.tls", "expected starttls or implicit, because the password would be sent in the clear")
	default:
		d.warn("smtp.tls", "mails with links for passwords cross the network in the clear")
	}
}

// Server returns the mail server as a value for package mailer. The port is the usual one of the kind of TLS if the
// file has none.
func (s *SMTP) Server() mailer.Server {
	port := s.Port
	switch {
	case port != 0:
	case s.TLS == mailer.Implicit:
		port = 465
	default:
		port = 587
	}
	return mailer.Server{Host: s.Host, Port: port, TLS: s.TLS, User: s.User, Password: s.Password.Reveal(),
		From: s.From}
}
