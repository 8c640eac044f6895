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
	// listAgain is the same after a failure, and listKept is how long the last list counts while it is not read.
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

// listsRead ends one reading of lists. The next one is due after a time.
type listsRead struct{ next time.Duration }

// startLister starts the actor that reads the providers' lists of models.
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
		l.read(c, true)
	case *kit.Tick:
		if l.timer.Fired(m) && !l.reading {
			l.read(c, false)
		}
	case *listsRead:
		l.rest(c, m.next)
	case *kit.Crashed:
		system.Logger().Error("reading lists of models panicked", "stack", string(m.Recovered.Stack))
		l.rest(c, listAgain)
	case *actor.Stopping, *actor.Restarting:
		l.timer.Stop()
	}
}

// read starts to read all lists, or those that are due. It does so once more after the present reading, which may have
// begun with other providers.
func (l *lister) read(c actor.Context, all bool) {
	if l.again = l.reading; l.again {
		return
	}
	l.reading = true
	l.runtime.system.Go(c.Self(), "lists of models", func(ctx context.Context) any {
		return &listsRead{l.runtime.readLists(ctx, all)}
	})
}

// rest ends a reading. If another was requested meanwhile, it begins at once, otherwise after next.
func (l *lister) rest(c actor.Context, next time.Duration) {
	if l.reading = false; l.again {
		l.read(c, true)
		return
	}
	l.timer.Stop()
	l.wait(next)
}

// wait sets the timer of the next round.
func (l *lister) wait(d time.Duration) {
	now := time.Now()
	l.timer.Wake(now, now.Add(d))
}

// readLists reads the lists of the providers whose models are behind a pattern: all of them, or those that are due. It
// returns the time until the next one is due.
func (r *Runtime) readLists(ctx context.Context, all bool) (next time.Duration) {
	next = listEvery
	c := r.Catalog()
	if c == nil {
		return next
	}
	for _, name := range c.Listing() {
		p := r.provider(name)
		if p == nil {
			continue
		}
		due := r.listDue(p)
		if _, paused := r.Pause(name); paused {
			due = max(due, listAgain) // it gets no request
		} else if all || due <= 0 {
			names, cut, err := r.options.ListModels(ctx, p.Spec.Shape, p.Client)
			r.keepList(p, names, cut, err)
			due = max(r.listDue(p), listAgain)
		}
		next = min(next, due)
	}
	r.configuring.Lock()
	defer r.configuring.Unlock()
	r.showLists() // a list may have become too old
	return next
}

// listDue returns the time until the list of a provider is to be read again. It is negative after that time.
func (r *Runtime) listDue(p *engine.Provider) time.Duration {
	r.configuring.Lock()
	defer r.configuring.Unlock()
	if list := r.lists[p.Spec.Name]; list.provider == p && !list.failing {
		return listEvery - time.Since(list.at)
	}
	return 0
}

// keepList puts the list of a provider in force. If it could not be read, the last one counts for a while.
func (r *Runtime) keepList(p *engine.Provider, names []string, cut bool, err error) {
	r.configuring.Lock()
	defer r.configuring.Unlock()
	name := p.Spec.Name
	if r.provider(name) != p {
		return // another configuration is in force, and its lists are read next
	}
	before := r.lists[name]
	list := modelNames{provider: p, names: names, at: time.Now()}
	switch {
	case errors.Is(err, modellist.ErrNone):
		r.options.Logger.Debug("a provider has no list of models", "provider", name)
	case err != nil:
		if !before.failing {
			r.options.Logger.Warn("list of models not read", "provider", name, "cause", err)
		}
		list = before
		list.provider, list.failing = p, true
	case cut:
		r.options.Logger.Warn("a provider lists more models than are shown", "provider", name, "shown", len(names))
	}
	r.lists[name] = list
	r.showLists()
}

// showLists puts the lists in force. It needs configuring.
func (r *Runtime) showLists() { r.catalog.Store(r.catalog.Load().WithLists(r.listed())) }

// listed returns the names that the providers in force list, unless they are too old. It needs configuring.
func (r *Runtime) listed() map[string][]string {
	all := make(map[string][]string, len(r.lists))
	for name, list := range r.lists {
		if r.provider(name) != list.provider {
			delete(r.lists, name) // it was changed, so its list may be another one
			continue
		}
		if time.Since(list.at) <= listKept {
			all[name] = list.names
		}
	}
	return all
}
