package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sourcegraph/conc"
	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/admin"
)

// Phases of a graceful stop.
const (
	// notReadyTime is the time for which the gateway goes on accepting after it has reported that it is not ready, so
	// that a load balancer stops sending requests first.
	notReadyTime = 200 * time.Millisecond
	// errorTime limits the time in which the streams that the grace time has cut off end with an error event.
	errorTime = 5 * time.Second
	// teardown limits the time in which the parts of the gateway are closed.
	teardown = 10 * time.Second
)

// serveCommand returns "stagedoor serve", the gateway itself.
func (a *app) serveCommand() *cobra.Command {
	var o overrides
	c := &cobra.Command{
		Use: "serve", Short: "Run the gateway", Args: cli.NoArgs,
		Long: `Run the gateway.

Without a configuration file the embedded sandbox answers every model name. The state
is kept in --data, by default in $XDG_DATA_HOME/stagedoor (~/.local/share/stagedoor);
--data memory keeps none. If there is no key yet, the gateway creates a first one. It
prints that key at each start until it is revoked, and keeps it in the file first-key of
the data directory.

SIGTERM and SIGINT stop gracefully: new requests are refused, streams may finish within
--grace, and the remaining ones end with the error event of their shape. A second signal
stops at once. SIGHUP or a change of the file makes the gateway read its configuration
again. A file with mistakes is reported and changes nothing.`,
		RunE: func(c *cobra.Command, _ []string) error { return a.serve(c.Context(), &o) },
	}
	o.flags(c)
	cli.CompleteFiles(c, "config", "yaml", "yml")
	cli.CompleteWords(c, "log-level", "debug", "info", "warn", "error")
	cli.CompleteWords(c, "log-format", "text", "json")
	cli.CompleteWords(c, "listen", "127.0.0.1:8080", ":8080")
	return c
}

// serve runs the gateway until it is stopped. The order of its steps matters. The signals are taken first, so that
// none is lost during the start. The follower reads the file before the configuration is, so that no change slips
// through. The listeners are opened before the state, so that a second gateway on the same address ends before it
// touches the data.
func (a *app) serve(ctx context.Context, o *overrides) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)

	for _, addr := range o.listen {
		if !config.Address(addr) {
			return fmt.Errorf("%w: --listen %q: expected host:port, for example 127.0.0.1:8080", cli.ErrUsage, addr)
		}
	}
	f := newFollower(o.file)
	defer f.close()
	c, err := o.loadWithData(a.Env)
	if err != nil {
		return err
	}
	lines := newLogBuffer(a.ErrOut)
	defer lines.Close()
	log, err := logger(c.Log, lines)
	if err != nil {
		return err
	}
	listeners, err := openListeners(ctx, c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: stop what listens there, perhaps another gateway, or choose another --listen", err)
	}
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	if err := a.announceState(c.Data); err != nil {
		return err
	}
	g, err := assemble(ctx, c, baseURL(c, listeners[0].Addr()), log, func(ctx context.Context, g *gateway) error {
		return standBy(ctx, g, c, listeners, signals)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardown)
		defer cancel()
		g.close(ctx)
	}()
	reload := func(ctx context.Context) error { return a.reconfigure(ctx, g, o, nil) }
	g.settings.env, g.settings.overrides, g.settings.follower, g.settings.reload = a.Env, o, f, reload
	if err := a.greet(ctx, g, c, listeners, o.file != ""); err != nil {
		return err
	}
	return a.runUntilStopped(ctx, g, listeners, signals, func(ctx context.Context) {
		// The log has why a file is not taken over, and pages show it.
		f.follow(ctx, log, func() { _ = reload(ctx) }, func() { a.retry(ctx, g, o) })
	})
}

// runUntilStopped serves until a signal, a failure of the listeners or of the store, or an operator's command stops the
// gateway. follow keeps the configuration up to date meanwhile.
// Everything that runs beside the requests is started here with wg, so that the function returns
// only after all of it has ended. The deferred calls run in reverse: cancel ends the loops, and
// Wait joins them, before serve closes the gateway that they use.
func (a *app) runUntilStopped(ctx context.Context, g *gateway, listeners []net.Listener, signals <-chan os.Signal,
	follow func(context.Context)) error {
	control, err := openControl(g.config.Load().Data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg conc.WaitGroup
	defer wg.Wait()
	defer cancel()

	served := make(chan error, 1)
	wg.Go(func() { served <- g.server.Serve(listeners) })
	wg.Go(func() { follow(ctx) })
	taking, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	wg.Go(func() { keepTakingOver(taking, g) })
	wg.Go(func() { keepBorrowing(ctx, g) })
	g.startLoops(ctx, &wg)
	defer g.startAlerts().Close()
	defer a.announceGateway(g, listeners)()
	if control != nil {
		wg.Go(func() { g.serveControl(ctx, control) })
	}
	g.logger.Info("serving", "listen", addresses(listeners), "data", g.config.Load().Data, "version", versionText())
	notifySystemd(daemon.SdNotifyReady)

	var leaving <-chan struct{}
	if shared := datadir.SharedStore(g.store); shared != nil {
		leaving = shared.Leaving()
	}
	drain := func() error {
		stopTaking() // what is taken over now would only have to be left to the next gateway again
		return a.drain(g, signals)
	}
	select {
	case err := <-served:
		return err
	case <-leaving:
		g.logger.Info("stopping, as an operator asked with nodes leave")
	case <-g.state.Failed():
		g.logger.Error("the store failed, stopping", "cause", g.state.Err())
		return errors.Join(datadir.Unavailable(g.state.Err()), drain())
	case <-ctx.Done():
	case s := <-signals:
		g.logger.Info("stopping", "signal", s.String(), "in_flight", g.runtime.Engine().InFlight())
	}
	return drain()
}

// startLoops starts the work that goes on while the gateway serves, until ctx ends.
func (g *gateway) startLoops(ctx context.Context, wg *conc.WaitGroup) {
	wg.Go(func() { keepTidy(ctx, g) })
	wg.Go(func() { keepDeleting(ctx, g) })
	wg.Go(func() { g.serveNodes(ctx) })
	wg.Go(func() { g.auth.EndRevoked(ctx, g.flow) })
	wg.Go(func() { g.watchDisk(ctx) })
	wg.Go(func() { g.overview.Record(ctx) })
	wg.Go(func() { keepBackups(ctx, g) })
	wg.Go(func() { paceGC(ctx, g.runtime.Engine().InFlight, g.state.ReleasePages) })
	wg.Go(func() { keepWatchdog(ctx, g) })
}

// announceGateway writes the run file by which commands find this gateway, and returns a function that removes it. The
// gateway serves without one, too.
func (a *app) announceGateway(g *gateway, listeners []net.Listener) (withdraw func()) {
	c := g.config.Load()
	withdraw, err := datadir.Announce(a.Env, datadir.Running{Data: c.Data, Address: baseURL(c, listeners[0].Addr())})
	if err != nil {
		g.logger.Warn("commands that are given another data directory cannot name this gateway", "cause", err)
		return func() {}
	}
	return withdraw
}

// serveControl serves the administration API on the control socket until ctx ends.
func (g *gateway) serveControl(ctx context.Context, control net.Listener) {
	recordings := &admin.Recordings{Recorder: g.runtime.Text().Recorder(), Key: func(id string) error {
		_, err := g.auth.ByID(id)
		return err
	}}
	admin.Serve(ctx, control, g.state, g.admin, recordings, g.logger)
}

// openControl opens the socket on which commands reach the gateway. It returns nil if the data is kept in memory,
// because the socket is in the data directory.
// A socket that an earlier process left is replaced. That is safe, because the lock of the data directory is held by
// now.
func openControl(data string) (net.Listener, error) {
	if data == "memory" {
		return nil, nil
	}
	path, err := datadir.Socket(data)
	if err != nil {
		return nil, err
	}
	l, err := admin.Listen(path)
	if err != nil {
		return nil, datadir.Unavailable(err)
	}
	return l, nil
}

// drain lets requests finish within the grace time and then cancels the rest. A second signal ends the process at once.
// The phases are those of a rolling update behind a balancer: report "not ready", go on accepting until the balancer
// has noticed, stop accepting, let streams end by themselves, and end the rest with the error event of their shape,
// which tells clients that they may try again. Each phase has a bound, so the sum is known in advance.
func (a *app) drain(g *gateway, signals <-chan os.Signal) error {
	grace := time.Duration(g.config.Load().Shutdown.Grace)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	var wg conc.WaitGroup
	defer wg.Wait()
	done := make(chan struct{})
	defer close(done)
	wg.Go(func() {
		if secondSignal(signals, done) {
			g.logger.Warn("second signal, stopping at once")
			os.Exit(exitFailure)
		}
	})
	notifySystemd(daemon.SdNotifyStopping)
	g.server.Drain()
	g.live.Drain()
	time.Sleep(min(notReadyTime, grace))
	// Shutdown stops accepting at once and then waits; the requests it waits
	// for are ended by the runtime. Sockets are not the server's any more.
	closed := make(chan error, 1)
	stop, stopNow := context.WithCancel(context.Background())
	defer stopNow()
	wg.Go(func() { closed <- errors.Join(g.server.Shutdown(stop), g.live.Wait(stop)) })
	// A connection that was accepted a moment ago may still bring its request:
	// nothing is refused before all that were accepted are done.
	select {
	case err := <-closed:
		closed <- err
	case <-ctx.Done():
	}
	if cut := g.runtime.Drain(ctx, errorTime); cut > 0 {
		g.logger.Warn("requests cut by the stop", "count", cut)
	}
	select {
	case err := <-closed:
		return err
	case <-time.After(errorTime):
		return g.server.Close()
	}
}

// sameSignalTime is the time after a signal in which another one counts as the same, because timeout(1) and others
// signal first the leader of a process group and then the whole group.
const sameSignalTime = 100 * time.Millisecond

// secondSignal waits for a signal that does not count as the one just received, and returns false if done is closed
// first. Without sameSignalTime, a stop by timeout(1) or by a process manager that signals a whole group would look
// like two signals of an impatient operator and cut all streams off.
func secondSignal(signals <-chan os.Signal, done <-chan struct{}) bool {
	received := time.Now()
	for {
		select {
		case <-signals:
			if time.Since(received) >= sameSignalTime {
				return true
			}
		case <-done:
			return false
		}
	}
}

// addresses returns the addresses of listeners, for the log.
func addresses(listeners []net.Listener) []string {
	var out []string
	for _, l := range listeners {
		out = append(out, l.Addr().String())
	}
	return out
}

// closeAll closes listeners that may be closed already.
func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			continue // the process ends: nothing is left to do about it
		}
	}
}
