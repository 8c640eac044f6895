package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"stagedoor/http/server"
)

// openListeners returns the listeners of the gateway. These are the sockets that the service manager holds open across
// restarts (LISTEN_FDS), so that no client is refused meanwhile. Without any it opens the addresses itself.
func openListeners(ctx context.Context, addresses []string) ([]net.Listener, error) {
	var handed []net.Listener
	for _, f := range activation.Files(true) {
		l, err := net.FileListener(f)
		_ = f.Close() // the listener has a descriptor of its own
		if err != nil {
			closeAll(handed)
			return nil, fmt.Errorf("the service manager's socket %s: %w", f.Name(), err)
		}
		handed = append(handed, l)
	}
	if len(handed) == 0 {
		return server.Listen(ctx, addresses)
	}
	return handed, server.Adopt(handed)
}

// notifySystemd reports a state of the gateway to the service manager, if there is one (sd_notify). It ignores an
// error, because the gateway can run without a service manager.
func notifySystemd(state string) { _, _ = daemon.SdNotify(false, state) }

// keepWatchdog reports to the service manager's watchdog, if there is one, that the gateway is alive, until ctx ends.
// It is alive if the actors answer. A process whose scheduler or actors hang reports nothing and is restarted.
func keepWatchdog(ctx context.Context, g *gateway) {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		g.logger.Warn("the service manager's watchdog cannot be kept", "cause", err)
		return
	}
	if within == 0 {
		return
	}
	tick := time.NewTicker(within / 3)
	defer tick.Stop()
	for {
		if err := alive(ctx, g, within/3); err == nil {
			notifySystemd(daemon.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			g.logger.Error("the actors do not answer", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// alive returns an error if the actors do not answer within a time.
func alive(ctx context.Context, g *gateway, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return g.runtime.Alive(ctx)
}
