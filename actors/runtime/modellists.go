package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/engine"
	"stagedoor/actors/kit"
	"stagedoor/providers/modellist"
)

const (
	// listEvery is the time after which the providers' lists of models are read again.
	listEvery = 6 * time.Hour
	// listAgain is the same after a failure, and listKept is how long the last list counts while reading it fails.
	listAgain = 10 * time.Minute
	listKept  = 24 * time.Hour
)

// modelNames are the names that a provider listed at a time.
type modelNames struct {
	provider *engine.Provider
	names    []string
	at       time.Time
	failing  bool // the last attempt to read the list failed, and the log says so
}

// lister reads the providers' own lists of models: at each change of the configuration, so also at the start, and again
// after a while. Lists are read beside it, one provider at a time. Its state is private to Receive.
type lister struct {
	runtime        *Runtime
	timer          *kit.Timer
	reading, again bool
}

// readLists asks the lister to read all lists now.
type readLists struct{}

// listsRead ends one reading of all lists.
type listsRead struct{ failed bool }

func (r *Runtime) startLister() (err error) {
	props := r.system.Props("lister", func() actor.Actor { return &lister{runtime: r} })
	r.lister, err = r.system.SpawnUnique(props, "lister")
	return err
}

// Receive implements actor.Actor.
func (l *lister) Receive(c actor.Context) {
	system := l.runtime.system
	switch m := c.Message().(type) {
	case *actor.Started:
		l.timer = system.NewTimer(c.Self())
		l.wait(listAgain) // the configuration asks for it before, unless this is a restart
	case *readLists:
		l.read(c)
	case *kit.Tick:
		if l.timer.Fired(m) {
			l.read(c)
		}
	case *listsRead:
		l.rest(c, m.failed)
	case *kit.Crashed:
		system.Logger().Error("reading lists of models panicked", "stack", string(m.Recovered.Stack))
		l.rest(c, true)
	case *actor.Stopping, *actor.Restarting:
		l.timer.Stop()
	}
}

// read starts to read, or does so once more after the present reading, which may have begun with other providers.
func (l *lister) read(c actor.Context) {
	if l.again = l.reading; l.again {
		return
	}
	l.reading = true
	l.runtime.system.Go(c.Self(), "lists of models", func(ctx context.Context) any {
		return &listsRead{l.runtime.readLists(ctx)}
	})
}

func (l *lister) rest(c actor.Context, failed bool) {
	if l.reading = false; l.again {
		l.read(c)
		return
	}
	l.timer.Stop()
	if failed {
		l.wait(listAgain)
	} else {
		l.wait(listEvery)
	}
}

func (l *lister) wait(d time.Duration) {
	now := time.Now()
	l.timer.Wake(now, now.Add(d))
}

// readLists reads the lists of all providers whose models are behind a pattern. It reports whether one failed.
func (r *Runtime) readLists(ctx context.Context) (failed bool) {
	c := r.Catalog()
	if c == nil {
		return false
	}
	for _, name := range c.Listing() {
		p := r.provider(name)
		if _, paused := r.Pause(name); p == nil || paused {
			continue // a paused provider gets no request, and its last list counts for a while
		}
		names, cut, err := r.options.ListModels(ctx, p.Spec.Shape, p.Client)
		failed = r.keepList(p, names, cut, err) || failed
	}
	return failed
}

// keepList puts the list of a provider in force. If it could not be read, the last one counts for a while. It reports
// whether reading should be tried again soon.
func (r *Runtime) keepList(p *engine.Provider, names []string, cut bool, err error) (failed bool) {
	r.configuring.Lock()
	defer r.configuring.Unlock()
	name := p.Spec.Name
	if r.provider(name) != p {
		return false // another configuration is in force, and its lists are read next
	}
	now, before := time.Now(), r.lists[name]
	list := modelNames{provider: p, names: names, at: now}
	switch {
	case errors.Is(err, modellist.ErrNone):
		r.options.Logger.Debug("a provider has no list of models", "provider", name)
	case err != nil:
		if failed = true; !before.failing {
			r.options.Logger.Warn("list of models not read", "provider", name, "cause", err)
		}
		list = before
		if list.provider, list.failing = p, true; now.Sub(list.at) > listKept {
			list.names = nil
		}
	case cut:
		r.options.Logger.Warn("a provider lists more models than are shown", "provider", name, "shown", len(names))
	}
	r.lists[name] = list
	r.catalog.Store(r.catalog.Load().WithLists(r.listed()))
	return failed
}

// listed returns the names that the providers in force list. It needs configuring.
func (r *Runtime) listed() map[string][]string {
	all := make(map[string][]string, len(r.lists))
	for name, list := range r.lists {
		if r.provider(name) != list.provider {
			delete(r.lists, name) // it was changed, so its list may be another one
			continue
		}
		all[name] = list.names
	}
	return all
}
