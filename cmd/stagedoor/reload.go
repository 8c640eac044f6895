package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/sourcegraph/conc/panics"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/state"
)

// settleTime must pass without a change before a file is read, because editors write
// in several steps.
const settleTime = 200 * time.Millisecond

// retryEvery is the time between two attempts at a configuration that has mistakes. The mistake may be in another file,
// such as that of a key or a certificate, which is not watched.
const retryEvery = 3 * time.Second

// follower notices that the configuration should be read again. It is made
// before the file is read for the first time, so that no change slips through.
type follower struct {
	file    string
	names   []string // of the file in the directories that are watched
	seen    []byte   // the text that was read last
	gone    bool     // it could not be read
	hup     chan os.Signal
	work    chan func()
	watcher *fsnotify.Watcher // nil: changes are not noticed
	err     error             // why
}

// newFollower returns a follower of a file, or one that only handles SIGHUP if there is no file.
func newFollower(file string) *follower {
	f := &follower{file: file, hup: make(chan os.Signal, 1), work: make(chan func())}
	signal.Notify(f.hup, syscall.SIGHUP)
	if file == "" {
		return f
	}
	f.names = []string{filepath.Base(file)}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		f.names = append(f.names, filepath.Base(real))
	}
	f.watcher, f.err = watch(file)
	f.changed()
	return f
}

// watch watches the directory of a file, not the file: editors replace it, and
// orchestrators turn a link beside it. A file that is a link itself may change
// in both places.
func watch(file string) (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(file)
	if err := errors.Join(err, w.Add(filepath.Dir(file)), w.Add(filepath.Dir(real))); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// do runs work between two readings of the configuration, so that no reading sees half of what work writes. It waits
// for the end of work. If ctx ends before work begins, work does not run, and do returns the cause. A panic of work is
// an error, so that the follower goes on.
func (f *follower) do(ctx context.Context, work func()) error {
	done := make(chan error, 1)
	select {
	case f.work <- func() { done <- panics.Try(work).AsError() }:
		return <-done
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close ends the follower's share of signals and its watcher.
func (f *follower) close() {
	signal.Stop(f.hup)
	if f.watcher != nil {
		_ = f.watcher.Close() // nothing is left to do about it
	}
}

// changed reports whether the text of the file differs from the last call's. A file that cannot be read any more counts
// as a change once. It does not log the error, because reading the configuration then returns it.
func (f *follower) changed() bool {
	text, err := os.ReadFile(f.file)
	if gone := err != nil; gone != f.gone || !gone && !bytes.Equal(text, f.seen) {
		f.seen, f.gone = text, gone
		return true
	}
	return false
}

// wrote records the text that a call of work has written to the file and puts in force itself, so that it does not
// count as a change. Another text, such as one that an operator wrote meanwhile, is still a change.
func (f *follower) wrote(text []byte) { f.seen, f.gone = text, false }

// follow calls reread on SIGHUP and when the file has changed, until ctx ends. Every retryEvery it calls retry, unless
// the file has just changed and may be half written.
func (f *follower) follow(ctx context.Context, log *slog.Logger, reread, retry func()) {
	var events <-chan fsnotify.Event
	var failures <-chan error
	if f.watcher != nil {
		events, failures = f.watcher.Events, f.watcher.Errors
	}
	if f.err != nil {
		log.Warn("changes of the configuration are not noticed, use SIGHUP", "cause", f.err)
	}
	// The first look is for what changed while the gateway started.
	settled := time.NewTimer(settleTime)
	defer settled.Stop()
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	waiting := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.hup:
			f.changed()
			reread()
		case work := <-f.work:
			work()
		case e := <-events:
			// Every event in the directory leads to a look at the file after settleTime. Only an event of a followed
			// file puts that look off again, because a log that grows in the same directory would put it off for ever.
			if !waiting || slices.Contains(f.names, filepath.Base(e.Name)) {
				settled.Reset(settleTime)
				waiting = true
			}
		case err := <-failures:
			log.Warn("changes of the configuration may go unnoticed, use SIGHUP", "cause", err)
		case <-settled.C:
			waiting = false
			if f.file != "" && f.changed() {
				reread()
			}
		case <-tick.C:
			if !waiting {
				retry()
			}
		}
	}
}

// errVacant refuses a file without any content, which would disable the gateway. An
// editor has emptied it and is about to write it.
var errVacant = errors.New("the file has neither keys nor providers nor models")

// retry reconfigures a gateway whose configuration has mistakes. It logs nothing while they stay the same.
func (a *app) retry(ctx context.Context, g *gateway, o *overrides) {
	if known := g.mistakes(); len(known) > 0 {
		_ = a.reconfigure(ctx, g, o, known) // the log has it, and pages show it
	}
}

// reconfigure reads the configuration as it is now and puts it in force: all of it or nothing. It returns why it is not
// in force, and keeps the mistakes for pages (g.broken). A change is recorded in the audit log. Mistakes are logged
// unless they are the known ones.
func (a *app) reconfigure(ctx context.Context, g *gateway, o *overrides, known []string) error {
	before := g.config.Load()
	if state.ActorOf(ctx).Kind == state.ActorGateway { // the API of administration sets another actor
		ctx = state.WithActor(ctx, state.Actor{Kind: state.ActorConfiguration})
	}
	c, err := o.loadWithData(a.Env)
	if err == nil && len(c.Keys)+len(c.Providers)+len(c.Models) == 0 {
		err = errVacant
	}
	if err == nil {
		err = g.configure(ctx, c)
	}
	mistakes := describeMistakes(err)
	if err != nil && slices.Equal(mistakes, known) {
		return err
	}
	g.broken.Store(&mistakes)
	var issues config.Issues
	switch {
	case errors.As(err, &issues):
		g.logger.Error("configuration unchanged: the file has mistakes", "count", len(issues))
		for _, i := range issues {
			g.logger.Error("configuration mistake", "at", i.String())
		}
	case err != nil:
		g.logger.Error("configuration unchanged", "cause", err)
	default:
		changed := config.Changed(before, g.config.Load())
		if len(changed) > 0 {
			removed, added := config.Difference(before, c)
			err := g.state.RecordAudit(ctx, state.AuditEvent{Action: "configuration.change",
				Target: state.Target{Kind: "configuration", ID: strings.Join(changed, " ")},
				Before: state.Fields{"lines": removed}, After: state.Fields{"lines": added}})
			if err != nil {
				g.logger.Warn("the audit log lacks a change of the configuration", "settings", changed, "cause", err)
			}
		}
		g.logger.Info("configuration read again", "changed", strings.Join(changed, " "),
			"catalog", g.runtime.Catalog().Pricing().List.Version, "providers", len(c.Providers), "models",
			len(c.Models),
			"keys", len(c.Keys))
	}
	return err
}

// mistakes returns what is wrong with the configuration file on disk, while the gateway goes on with an earlier one.
func (g *gateway) mistakes() []string {
	if list := g.broken.Load(); list != nil {
		return *list
	}
	return nil
}

// maxMistakes bounds the mistakes of a file that pages show. The log has all.
const maxMistakes = 10

// describeMistakes returns an error as lines for pages: each mistake of a file, or the one error.
func describeMistakes(err error) (list []string) {
	var issues config.Issues
	if !errors.As(err, &issues) {
		if err != nil {
			list = []string{err.Error()}
		}
		return list
	}
	for i, issue := range issues {
		if i == maxMistakes {
			return append(list, fmt.Sprintf("and %d more, which the log has", len(issues)-i))
		}
		list = append(list, issue.String())
	}
	return list
}

// fixed returns the names of the settings that differ between two configurations and that take effect only at a
// restart.
func fixed(before, after *config.Config) []string {
	var changed []string
	for _, s := range []struct {
		name          string
		before, after any
	}{
		{"listen", before.Listen, after.Listen}, {"tls", before.TLS, after.TLS},
		{"trusted_proxies", before.Proxies, after.Proxies}, {"admin.user", before.Admin.User, after.Admin.User},
		{"data", before.Data, after.Data}, {"cluster", before.Cluster, after.Cluster},
		{"oauth", before.OAuth.AtStart(), after.OAuth.AtStart()}, {"log", before.Log, after.Log},
		{"heartbeat", before.Heartbeat, after.Heartbeat},
		{"aliases", before.Aliases, after.Aliases}, {"telemetry", before.Telemetry, after.Telemetry},
		{"videos", before.Videos, after.Videos},
		{"request_log.store", before.Requests.Store, after.Requests.Store},
	} {
		if !reflect.DeepEqual(s.before, s.after) {
			changed = append(changed, s.name)
		}
	}
	return changed
}
