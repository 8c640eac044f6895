package mailer_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"stagedoor/http/web/mailer"
	"stagedoor/http/web/mailer/mailertest"
)

func TestAMailReachesAServerOverAnEncryptedConnection(t *testing.T) {
	for _, way := range []string{mailer.StartTLS, mailer.Implicit} {
		t.Run(way, func(t *testing.T) {
			server := mailertest.Start(t, way)
			c := mailer.New(server.Options(way))
			text := "Grüße.\n.\n" + strings.Repeat("long ", 60) +
				"\nhttps://gateway.example.net/signin/link?link=a=b\n"
			errs := c.Send(t.Context(), []mailer.Mail{{To: "dora@example.com", Subject: "An invitation: Grüße",
				Text: text}})
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			got := server.Taken()
			if len(got) != 1 {
				t.Fatalf("the server has %d mails", len(got))
			}
			m := got[0]
			if m.From != "gateway@example.net" || m.To != "dora@example.com" || m.Subject != "An invitation: Grüße" ||
				strings.ReplaceAll(m.Text, "\r\n", "\n") != text ||
				m.Header.Get("From") != `"Stagedoor" <gateway@example.net>` {
				t.Errorf("the server has %+v", m)
			}
			for _, name := range []string{"Date", "Message-Id", "Auto-Submitted"} {
				if m.Header.Get(name) == "" {
					t.Errorf("the mail has no %s", name)
				}
			}
		})
	}
}

func TestAMailThatIsRefusedDoesNotKeepOthersFromTheirs(t *testing.T) {
	server := mailertest.Start(t, mailer.StartTLS)
	server.Refuse = []string{"gone@example.com"}
	errs := mailer.New(server.Options(mailer.StartTLS)).Send(t.Context(), []mailer.Mail{{To: "dora@example.com"},
		{To: "gone@example.com"}, {To: "eva@example.com"}})
	if errs[0] != nil || errs[1] == nil || errs[2] != nil || len(server.Taken()) != 2 {
		t.Errorf("the errors are %q, %d mails are taken", errs, len(server.Taken()))
	}
}

func TestNothingIsSentWithoutTheEncryptionThatIsDemanded(t *testing.T) {
	server := mailertest.Start(t, mailer.None)
	dora := []mailer.Mail{{To: "dora@example.com"}}
	if errs := mailer.New(server.Options(mailer.StartTLS)).Send(t.Context(), dora); errs[0] == nil {
		t.Error("a server without STARTTLS got a mail")
	}
	secure := mailertest.Start(t, mailer.StartTLS)
	strange := secure.Options(mailer.StartTLS)
	strange.Roots = nil
	if errs := mailer.New(strange).Send(t.Context(), dora); errs[0] == nil {
		t.Error("a server with the certificate of a stranger got a mail")
	}
	if n := len(server.Taken()) + len(secure.Taken()); n != 0 {
		t.Errorf("%d mails were taken", n)
	}
}

func TestAServerThatIsSilentOrTalksNonsenseIsLeft(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // it accepts no connection
	o := mailer.Options{Now: time.Now, Server: func() mailer.Server {
		return mailer.Server{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, From: "a@example.net"}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	errs := mailer.New(o).Send(ctx, []mailer.Mail{{To: "dora@example.com"}})
	if errs[0] == nil || time.Since(began) > time.Minute {
		t.Errorf("after %v: %v", time.Since(began), errs[0])
	}
	if errors.Is(errs[0], mailer.ErrBusy) {
		t.Error("nothing else was being sent")
	}
}

func TestNoAddressAddsALineToTheHeader(t *testing.T) {
	server := mailertest.Start(t, mailer.StartTLS)
	c := mailer.New(server.Options(mailer.StartTLS))
	errs := c.Send(t.Context(), []mailer.Mail{{To: "dora@example.com>\r\nRCPT TO:<eve@example.com"},
		{To: "dora@example.com", Subject: "a\r\nBcc: eve@example.com"}})
	if errs[0] == nil {
		t.Error("an address with a line end was sent")
	}
	for _, m := range server.Taken() {
		if m.To != "dora@example.com" || m.Header.Get("Bcc") != "" {
			t.Errorf("the server has %+v", m)
		}
	}
}
