package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/auth"
	"stagedoor/state/identity"
)

// announceState prints the first line of the output of serve, which says where the state is.
func (a *app) announceState(data string) error {
	text := "Stagedoor keeps its state in " + data
	if data == "memory" {
		text = "Stagedoor keeps its state in memory and loses it when it stops"
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}

// greet prints the addresses, the first key or how to make a key, and how to become an administrator. It makes the
// first key if there is no key.
func (a *app) greet(ctx context.Context, g *gateway, c *config.Config, listeners []net.Listener, hasFile bool) error {
	first, err := findFirstKey(ctx, g.state, c.Data, len(c.Keys) > 0)
	if err != nil {
		return err
	}
	if !hasFile {
		g.first.Store(first)
	}
	base := baseURL(c, listeners[0].Addr())
	pages := cmp.Or(c.OAuth.Issuer, base)
	keys := "make one with  stagedoor keys create" + datadir.Flag(c.Data, a.Env)
	switch stored := len(identity.ListKeys(g.state.View(), identity.KeyFilter{Live: true})); {
	case first != nil:
		keys = first.secret
	case c.Data == "memory":
		keys = cli.Count(len(c.Keys), "key") + " in the configuration file"
	case stored+len(c.Keys) > 0:
		keys = fmt.Sprintf("%d in use; %s", stored+len(c.Keys), keys)
	}
	if _, err := fmt.Fprintf(a.Out, "\n  address  %s\n  pages    %s/\n  admin    %s\n  key      %s\n\n", base, pages,
		a.administrators(ctx, g, c.Data, pages), keys); err != nil || first == nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, `Try it:

  curl %s/v1/chat/completions -H 'Authorization: Bearer %s' \
    -H 'Content-Type: application/json' \
    -d '{"model": "%s", "messages": [{"role": "user", "content": "Hello!"}]}'

`, base, first.secret, someModel(c))
	return err
}

// containerVariable is set in the image of the gateway, and by other tools that make containers.
const containerVariable = "container"

// administrators returns a text that says how to reach the pages of administration. While there is no administrator, it
// is a link that makes one.
func (a *app) administrators(ctx context.Context, g *gateway, data, pages string) string {
	if identity.HasAdministrator(g.state.View()) {
		return pages + "/admin"
	}
	// The link works on this machine only, so browsers must reach the pages there. They cannot in a container, where
	// every browser comes from the address of a bridge.
	_, container := a.Env(containerVariable)
	if u, err := url.Parse(pages); err == nil && auth.IsLoopbackHost(u.Host) && !container {
		if secret, _, err := g.runtime.Tokens().AdministratorLink(ctx); err == nil {
			return g.browser.Link(secret) + "\n           (works once, on this computer, within 15 minutes)"
		}
	}
	if data == "memory" {
		return "keep the state to make an administrator: --data DIRECTORY"
	}
	command := "stagedoor users create NAME --admin" + datadir.Flag(data, a.Env)
	if container {
		command = "docker exec CONTAINER /" + command
	}
	return "make an administrator with  " + command
}

// baseURL returns the address of the gateway for a client on this machine.
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

// someModel returns the name of a model that the configuration serves, for an example.
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
