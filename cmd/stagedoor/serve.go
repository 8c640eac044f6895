package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/sourcegraph/conc"
	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/http/admin"
	"stagedoor/http/server"
	"stagedoor/state"
)

// Phases of a graceful stop.
const (
	// lameDuck is how long the gateway goes on accepting after it said that it
	// is not ready, so that a balancer can notice.
	lameDuck = 200 * time.Millisecond
	// lastWords is how long streams that are cut have to end with their error.
	lastWords = 5 * time.Second
	teardown  = 10 * time.Second
)

func (a *app) serveCommand() *cobra.Command {
	var o overrides
	c := &cobra.Command{
		Use: "serve", Short: "Run the gateway", Args: cobra.NoArgs,
		Long: `Run the gateway.

Without a configuration file the embedded sandbox answers every model name, the
state is kept in memory, and a key to try it with is printed.

SIGTERM and SIGINT stop gracefully: nothing new is accepted, streams may finish
within --grace, what is left then ends with its shape's error event. A second
signal stops at once. SIGHUP, or a change of the file, reads the configuration
again; a file with mistakes changes nothing and is reported.`,
		RunE: func(c *cobra.Command, _ []string) error { return a.serve(c.Context(), &o) },
	}
	o.flags(c)
	return c
}

func (a *app) serve(ctx context.Context, o *overrides) error {
	c, err := o.load(a.env)
	if err != nil {
		return err
	}
	lines := newLogBuffer(a.errOut)
	defer lines.Close()
	log, err := logger(c.Log, lines)
	if err != nil {
		return err
	}
	listeners, err := server.Listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	g, err := assemble(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardown)
		defer cancel()
		g.close(ctx)
	}()
	if err := a.greet(ctx, g, c, listeners); err != nil {
		return err
	}
	return a.runUntilStopped(ctx, g, c, o, listeners)
}

// runUntilStopped serves until a signal, a failure of the listeners or of the
// store.
func (a *app) runUntilStopped(ctx context.Context, g *gateway, c *config.Config, o *overrides, listeners []net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg conc.WaitGroup
	defer wg.Wait()
	defer cancel()

	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)

	served := make(chan error, 1)
	wg.Go(func() { served <- g.server.Serve(listeners) })
	wg.Go(func() { a.reload(ctx, g, o) })
	wg.Go(func() { sweep(ctx, g) })
	wg.Go(func() { paceGC(ctx) })
	if c.Data != "memory" {
		control, err := admin.Listen(filepath.Join(c.Data, admin.SocketName))
		if err != nil {
			g.server.Close()
			return err
		}
		wg.Go(func() { admin.Serve(ctx, control, g.state, g.logger) })
	}
	g.logger.Info("serving", "listen", addresses(listeners), "data", c.Data, "version", versionText())

	select {
	case err := <-served:
		return err
	case <-g.state.Failed():
		g.logger.Error("the store failed, stopping", "cause", g.state.Err())
		a.drain(g, signals, time.Duration(c.Shutdown.Grace))
		return g.state.Err()
	case <-ctx.Done():
	case s := <-signals:
		g.logger.Info("stopping", "signal", s.String(), "in_flight", g.house.Translator().InFlight())
	}
	return a.drain(g, signals, time.Duration(c.Shutdown.Grace))
}

// drain ends the gateway's requests: whoever can, in peace.
func (a *app) drain(g *gateway, signals <-chan os.Signal, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	var wg conc.WaitGroup
	defer wg.Wait()
	done := make(chan struct{})
	defer close(done)
	wg.Go(func() {
		select {
		case <-signals:
			g.logger.Warn("second signal, stopping at once")
			os.Exit(exitFailure)
		case <-done:
		}
	})
	g.server.Drain()
	time.Sleep(min(lameDuck, grace))
	// Shutdown stops accepting at once and then waits; the requests it waits
	// for are ended by the house.
	closed := make(chan error, 1)
	stop, stopNow := context.WithCancel(context.Background())
	defer stopNow()
	wg.Go(func() { closed <- g.server.Shutdown(stop) })
	if cut := g.house.Drain(ctx, lastWords); cut > 0 {
		g.logger.Warn("requests cut by the stop", "count", cut)
	}
	select {
	case err := <-closed:
		return err
	case <-time.After(lastWords):
		return g.server.Close()
	}
}

// reload follows SIGHUP and changes of the file.
func (a *app) reload(ctx context.Context, g *gateway, o *overrides) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	changes := make(<-chan fsnotify.Event)
	if o.file != "" {
		if w, err := fsnotify.NewWatcher(); err == nil {
			defer w.Close()
			// Editors replace files: the directory is what stays.
			if err := w.Add(filepath.Dir(o.file)); err == nil {
				changes = w.Events
			}
		}
	}
	settled := time.NewTimer(time.Hour)
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			a.reconfigure(ctx, g, o)
		case ev := <-changes:
			if filepath.Clean(ev.Name) == filepath.Clean(o.file) {
				settled.Reset(200 * time.Millisecond)
			}
		case <-settled.C:
			a.reconfigure(ctx, g, o)
		}
	}
}

func (a *app) reconfigure(ctx context.Context, g *gateway, o *overrides) {
	c, err := o.load(a.env)
	if err == nil {
		err = g.configure(ctx, c)
	}
	if err != nil {
		g.logger.Error("configuration not changed: it has mistakes", "cause", err)
		return
	}
	g.logger.Info("configuration read again")
}

// sweep removes expired responses, a few at a time.
func sweep(ctx context.Context, g *gateway) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := g.state.Sweep(ctx, 500); err != nil && ctx.Err() == nil {
				g.logger.Warn("expired responses not removed", "cause", err)
			}
		}
	}
}

// greet makes a first key where there is none, and says how to use it.
func (a *app) greet(ctx context.Context, g *gateway, c *config.Config, listeners []net.Listener) error {
	if len(c.Keys) > 0 || len(g.state.Keys(state.KeyFilter{})) > 0 {
		return nil
	}
	secret, key, err := newKey("first")
	if err != nil {
		return err
	}
	if err := g.state.AddKey(ctx, key); err != nil {
		return err
	}
	base := "http://" + listeners[0].Addr().String()
	_, err = fmt.Fprintf(a.out, `Stagedoor is listening on %s

  key   %s

Try it:

  curl %s/v1/chat/completions -H 'Authorization: Bearer %s' \
    -H 'Content-Type: application/json' \
    -d '{"model": "sandbox", "messages": [{"role": "user", "content": "Hello!"}]}'

`, base, secret, base, secret)
	return err
}

// newKey makes a key that may do everything.
func newKey(name string) (secret string, key state.Key, err error) {
	secret, prefix, hash, err := state.NewSecret(rand.Reader)
	if err != nil {
		return "", state.Key{}, err
	}
	return secret, state.Key{ID: "key_" + newID(), Prefix: prefix, Hash: hash, Name: name, Enabled: true, Created: time.Now()}, nil
}

func addresses(listeners []net.Listener) []string {
	var out []string
	for _, l := range listeners {
		out = append(out, l.Addr().String())
	}
	return out
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			continue // the process ends: nothing is left to do about it
		}
	}
}
