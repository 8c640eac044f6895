package main

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sourcegraph/conc"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/server"
	"stagedoor/state"
	"stagedoor/state/journal"
)

// errEnough ends a stand-by that was stopped before it served.
var errEnough = errors.New("the stand-by was stopped")

// standBy returns when this gateway may change the state: at once, unless it is a stand-by. Then the live gateway's
// changes are followed meanwhile, so that little is left to do when that one ends, and health checks are answered.
// The error is errEnough after a signal.
func standBy(ctx context.Context, g *gateway, c *config.Config, listeners []net.Listener,
	signals <-chan os.Signal) error {
	shared := datadir.SharedStore(g.store)
	if shared == nil || !shared.Standby() {
		return nil
	}
	g.logger.Info("standing by", "listen", addresses(listeners), "version", versionText())
	notifySystemd(daemon.SdNotifyReady + "\nSTATUS=standing by")
	waiting, end := context.WithCancelCause(ctx)
	defer end(nil)
	var wg conc.WaitGroup
	wg.Go(func() {
		if err := server.StandBy(waiting, listeners, standbyOptions(g, c)); err != nil {
			end(err)
		}
	})
	wg.Go(func() {
		select {
		case <-signals:
			end(errEnough)
		case <-shared.Leaving():
			end(errEnough)
		case <-g.state.Failed():
			end(datadir.Unavailable(g.state.Err()))
		case <-waiting.Done():
		}
	})
	wg.Go(func() { pingManager(waiting) })
	err := shared.Await(waiting)
	if err == nil {
		err = catchUp(waiting, g.state)
	}
	end(nil)
	wg.Wait()
	if err != nil {
		return datadir.Unavailable(err)
	}
	g.logger.Info("taking over")
	return nil
}

// catchUp applies the last changes of the gateway that was live before this one changes anything. The database often
// fails together with that gateway, so catchUp tries again for as long as the database cannot be reached.
func catchUp(ctx context.Context, s *state.State) error {
	for {
		err := state.Run(ctx, s, func(*state.Tx) error { return nil })
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil || s.Err() != nil || !errors.Is(err, journal.ErrUnreachable):
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(betweenTries):
		}
	}
}

// betweenTries is the time after which catchUp asks the database again.
const betweenTries = 200 * time.Millisecond

// standbyOptions returns what the server of a stand-by needs.
func standbyOptions(g *gateway, c *config.Config) server.Options {
	o := server.Options{Logger: g.logger, Health: func(context.Context) server.Health {
		return server.Health{Blocking: []server.Condition{{Code: "standby",
			Message: "the gateway is a stand-by and takes over when the one that serves ends"}}}
	}}
	if c.TLS != nil {
		o.CertFile, o.KeyFile = c.TLS.Cert, c.TLS.Key
	}
	return o
}

// pingManager reports to the service manager's watchdog, if there is one, that the stand-by is alive, until ctx ends.
func pingManager(ctx context.Context) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil || within == 0 {
		return // keepWatchdog reports an error when the gateway serves
	}
	tick := time.NewTicker(within / 3)
	defer tick.Stop()
	for {
		notifySystemd(daemon.SdNotifyWatchdog)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// maxSilence bounds the time for which a gateway goes on without its database. Another one may have taken its place
// and, for example, revoked a key: a stand-by, one that was started under another name, or any after nodes expel.
const maxSilence = 10 * time.Second

// staleness returns the condition under which requests are refused because another gateway may have taken over, or nil
// if there can be none. It holds at once when the database has refused this gateway.
func (g *gateway) staleness() func() bool {
	shared := datadir.SharedStore(g.store)
	if shared == nil {
		return nil
	}
	return func() bool { return shared.Silent() > maxSilence || g.store.Stats().Poisoned != nil }
}
