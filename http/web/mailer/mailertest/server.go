// Package mailertest is an SMTP server for tests. It takes mails over an encrypted connection from a client that has
// signed in, and keeps them in memory.
//
// # Usage
//
//	s := mailertest.Start(t, mailer.StartTLS)
//	c := mailer.New(s.Options(mailer.StartTLS))
//	errs := c.Send(t.Context(), mails)
//	got := s.Taken()
//
// The server speaks the protocol over a socket and has a certificate of its own, which Options makes the client trust.
// A test thus covers the encryption and the sign-in, which a fake of the client would skip.
package mailertest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/sourcegraph/conc"

	"stagedoor/http/web/mailer"
)

// The gateway at the server.
const (
	User     = "stagedoor"
	Password = "a secret: with signs/+&"
)

// Mail is a mail that the server has taken.
type Mail struct {
	From, To      string // of the envelope
	Header        mail.Header
	Subject, Text string // decoded
}

// Server is a running server.
type Server struct {
	// Refuse has the recipients that the server does not take. A test sets it before it sends.
	Refuse []string

	address *net.TCPAddr
	roots   *x509.CertPool
	mu      sync.Mutex
	taken   []Mail
}

// Start runs a server until the test ends. way is how it encrypts connections, as in mailer.Server.
func Start(t *testing.T, way string) *Server {
	t.Helper()
	// The certificate of httptest is good for 127.0.0.1.
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	s := &Server{roots: x509.NewCertPool()}
	s.roots.AddCert(web.Certificate())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().(*net.TCPAddr)
	encryption := &tls.Config{Certificates: web.TLS.Certificates}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{server: s, conn: c}, nil
	}))
	server.Domain, server.ErrorLog = "mail.test", log.New(io.Discard, "", 0)
	server.ReadTimeout, server.WriteTimeout = time.Minute, time.Minute
	switch way {
	case mailer.StartTLS:
		server.TLSConfig = encryption
	case mailer.Implicit:
		listener = tls.NewListener(listener, encryption)
	}
	var running conc.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) // until it is closed
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	return s
}

// Options returns the options of a client that sends by the server, which encrypts as way says.
func (s *Server) Options(way string) mailer.Options {
	at := mailer.Server{Host: "127.0.0.1", Port: s.address.Port, TLS: way, User: User, Password: Password,
		From: "Stagedoor <gateway@example.net>"}
	return mailer.Options{Server: func() mailer.Server { return at }, Name: "gateway.example.net", Now: time.Now,
		Roots: s.roots}
}

// Taken returns the mails that the server has taken so far.
func (s *Server) Taken() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

// session is the conversation with one client.
type session struct {
	server *Server
	conn   *smtp.Conn
	in     bool
	mail   Mail
}

func (s *session) Reset()        { s.mail = Mail{} }
func (s *session) Logout() error { return nil }

// AuthMechanisms implements smtp.AuthSession.
func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if s.in = user == User && password == Password; !s.in {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

// Mail implements smtp.Session. A client that has not signed in is refused.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.mail.From = from; !s.in {
		return smtp.ErrAuthRequired
	}
	return nil
}

// Rcpt implements smtp.Session.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.mail.To = to; slices.Contains(s.server.Refuse, to) {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "No such user here"}
	}
	return nil
}

// Data implements smtp.Session. It decodes the mail, so that a test compares what a person reads.
func (s *session) Data(r io.Reader) error {
	parsed, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	if parsed.Header.Get("Content-Transfer-Encoding") != "quoted-printable" {
		return errors.New("the text has an unknown encoding")
	}
	text, err := io.ReadAll(quotedprintable.NewReader(parsed.Body))
	if err != nil {
		return err
	}
	s.mail.Header, s.mail.Text = parsed.Header, string(text)
	if s.mail.Subject, err = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject")); err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.taken = append(s.server.taken, s.mail)
	return nil
}
