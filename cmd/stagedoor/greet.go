package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"stagedoor/cmd/stagedoor/admincli"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/state/identity"
)

// greet makes a first key where there is none, and says how to use it.
func (a *app) greet(ctx context.Context, g *gateway, c *config.Config, listeners []net.Listener) error {
	if len(c.Keys) > 0 || len(identity.ListKeys(g.state.View(), identity.KeyFilter{})) > 0 {
		return nil
	}
	secret, key, err := admincli.NewKey("first")
	if err != nil {
		return err
	}
	if err := identity.CreateKey(ctx, g.state, key); err != nil {
		return err
	}
	base := baseURL(c, listeners[0].Addr())
	_, err = fmt.Fprintf(a.Out, `Stagedoor is listening on %s

  key   %s

Try it:

  curl %s/v1/chat/completions -H 'Authorization: Bearer %s' \
    -H 'Content-Type: application/json' \
    -d '{"model": "%s", "messages": [{"role": "user", "content": "Hello!"}]}'

`, base, secret, base, secret, someModel(c))
	return err
}

// baseURL is where a client on this machine finds the gateway.
func baseURL(c *config.Config, addr net.Addr) string {
	scheme := "http://"
	if c.TLS != nil {
		scheme = "https://"
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return scheme + addr.String()
	}
	return fmt.Sprintf("%slocalhost:%d", scheme, tcp.Port)
}

// someModel is a name that the configuration serves.
func someModel(c *config.Config) string {
	for _, m := range c.Models {
		if !strings.Contains(m.Name, "*") {
			return m.Name
		}
	}
	for _, m := range c.Models {
		return strings.Replace(m.Name, "*", "sandbox", 1)
	}
	return "sandbox"
}
