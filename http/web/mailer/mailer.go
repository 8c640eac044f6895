// Package mailer sends the mails of the pages, which have a one-time link each, over an SMTP server that the operator
// names. A gateway needs no mail server: the pages show the links then.
//
// # Errors
//
// A conversation with the server has a bounded time, because a person waits for its outcome. Nothing is kept and tried
// again: a page shows the link of a mail that was not taken, so that nothing is lost with it. Errors are for the log.
// They have what the server answered, and never the text of a mail.
//
// # Concurrency
//
// Any goroutine may use a Client. Only a few conversations run at a time, because each of them holds a request of a
// page open. Further ones fail at once with ErrBusy, and the page shows the links.
package mailer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Ways to encrypt the connection to a server.
const (
	StartTLS = "starttls" // the connection begins in the clear, and nothing is sent before it is encrypted
	Implicit = "implicit" // the connection begins with TLS
	None     = "none"
)

// Server is the SMTP server that takes the mails. Without a Host there is none.
type Server struct {
	Host string
	Port int
	TLS  string // StartTLS, Implicit or None
	// User and Password sign in to the server, unless User is "".
	User, Password string
	// From is the sender, with or without a name.
	From string
}

// Mail is a plain text for one person.
type Mail struct{ To, Subject, Text string }

const (
	// sendWithin bounds a conversation with the server, which a person waits for.
	sendWithin = 20 * time.Second
	// maxSending is the number of conversations that may be under way.
	maxSending = 4
	// maxReason bounds what the log gets of an answer of the server.
	maxReason = 300
)

// ErrBusy means that too many mails are being sent.
var ErrBusy = errors.New("too many mails are being sent")

// Options configure a Client.
type Options struct {
	// Server returns the server of now.
	Server func() Server
	// Name is the host name of the gateway, with which it greets the server.
	Name string
	Now  func() time.Time
	// Roots are the authorities of the server's certificate. Nil: those of the system.
	Roots *x509.CertPool
}

// Client sends mails. Any goroutine may use it.
type Client struct {
	options Options
	sending atomic.Int32 // conversations that are under way
}

// New makes a Client.
func New(o Options) *Client { return &Client{options: o} }

// Ready reports whether there is a server.
func (c *Client) Ready() bool { return c != nil && c.options.Server().Host != "" }

// Send sends mails over one connection and returns one error for each, which is nil if the server has taken the mail.
// It takes at most sendWithin in all. A mail that the server refuses does not keep it from the others.
func (c *Client) Send(ctx context.Context, mails []Mail) []error {
	errs := make([]error, len(mails))
	sent, err := 0, ErrBusy
	defer c.sending.Add(-1)
	if c.sending.Add(1) <= maxSending {
		ctx, cancel := context.WithTimeout(ctx, sendWithin)
		defer cancel()
		sent, err = c.sendAll(ctx, c.options.Server(), mails, errs)
	}
	for i := sent; i < len(mails); i++ {
		errs[i] = err
	}
	return errs
}

// sendAll sends mails until the connection fails. It returns the number of those whose errors are in errs, and the
// error of the others.
func (c *Client) sendAll(ctx context.Context, s Server, mails []Mail, errs []error) (decided int, err error) {
	from, err := mail.ParseAddress(s.From)
	if err != nil {
		return 0, errors.New("the sender is no address")
	}
	conn, err := c.open(ctx, s)
	if err != nil {
		return 0, reason(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	for i, m := range mails {
		err := send(conn, from, m, c.options.Now())
		if refused := (*smtp.SMTPError)(nil); err != nil && !errors.As(err, &refused) {
			return i, reason(ctx, err)
		}
		if errs[i] = nil; err != nil {
			errs[i] = reason(ctx, err)
			if err := conn.Reset(); err != nil {
				return i + 1, reason(ctx, err)
			}
		}
	}
	_ = conn.Quit() // the mails are taken, whatever the server says to this
	return len(mails), nil
}

// reason returns err as it may stand in the log: short, and with the limit that was reached if there was one.
func reason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	text := err.Error()
	return fmt.Errorf("the mail server did not take it: %q", text[:min(len(text), maxReason)])
}

// open connects to the server, encrypts the connection as s demands, and signs in.
func (c *Client) open(ctx context.Context, s Server) (conn *smtp.Client, err error) {
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(s.Host, strconv.Itoa(s.Port)))
	if err != nil {
		return nil, errors.New("no connection") // the cause names the address
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	defer func() {
		if err != nil {
			raw.Close()
		}
	}()
	config := &tls.Config{ServerName: s.Host, RootCAs: c.options.Roots, MinVersion: tls.VersionTLS12}
	switch s.TLS {
	case StartTLS:
		if conn, err = smtp.NewClientStartTLS(raw, config); err != nil {
			return nil, err
		}
	case Implicit:
		conn = smtp.NewClient(tls.Client(raw, config))
	default:
		conn = smtp.NewClient(raw)
	}
	conn.CommandTimeout, conn.SubmissionTimeout = sendWithin, sendWithin
	if err = conn.Hello(c.options.Name); err != nil || s.User == "" {
		return conn, err
	}
	method := sasl.NewPlainClient("", s.User, s.Password)
	if !conn.SupportsAuth(sasl.Plain) && conn.SupportsAuth(sasl.Login) {
		method = sasl.NewLoginClient(s.User, s.Password)
	}
	return conn, conn.Auth(method)
}

// send hands one mail to the server.
func send(conn *smtp.Client, from *mail.Address, m Mail, now time.Time) error {
	to := mail.Address{Address: m.To}
	return conn.SendMail(from.Address, []string{m.To}, bytes.NewReader(compose(from, &to, m, now)))
}

// compose returns a mail as RFC 5322 has it. Its lines are short enough for all servers, and no field can add a line
// to its header, because each is encoded.
func compose(from, to *mail.Address, m Mail, now time.Time) []byte {
	_, domain, _ := strings.Cut(from.Address, "@")
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", from.String()}, {"To", to.String()}, {"Subject", mime.QEncoding.Encode("utf-8", m.Subject)},
		{"Date", now.Format(time.RFC1123Z)}, {"Message-ID", "<" + rand.Text() + "@" + domain + ">"},
		{"Auto-Submitted", "auto-generated"}, {"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"}, {"Content-Transfer-Encoding", "quoted-printable"},
	} {
		b.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = io.WriteString(w, m.Text) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}
