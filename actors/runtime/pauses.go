package runtime

import (
	"context"

	"stagedoor/state"
	"stagedoor/state/work"
)

// SetPaused pauses or resumes a provider. While it is paused, its new requests wait in its queue, and their deadlines
// still apply. Requests in flight go on. The pause is stored before it takes effect, so it outlives a restart. It ends
// when SetPaused ends it or when the provider leaves the configuration. SetPaused returns state.ErrNotFound for a
// provider that is not configured.
func (r *Runtime) SetPaused(ctx context.Context, name string, paused bool) error {
	r.configuring.Lock()
	defer r.configuring.Unlock()
	p := r.provider(name)
	if p == nil {
		return state.ErrNotFound
	}
	err := r.keepPauses(ctx, func(tx *state.Tx) error {
		if paused {
			return work.PauseProvider(tx, name)
		}
		work.EndPause(tx, name)
		return nil
	})
	switch {
	case err != nil:
		return err
	case paused:
		p.Limiter.Pause()
	default:
		p.Limiter.Resume()
	}
	return nil
}

// followPauses pauses and resumes this process's providers as other processes have recorded it in the state.
func (r *Runtime) followPauses() {
	r.configuring.Lock()
	defer r.configuring.Unlock()
	for name, p := range *r.providers.Load() {
		switch _, paused := r.Pause(name); {
		case paused == p.Limiter.Paused():
		case paused:
			p.Limiter.Pause()
		default:
			p.Limiter.Resume()
		}
	}
}

// Pause returns the pause of a provider, or false if the provider is not paused.
func (r *Runtime) Pause(name string) (work.Pause, bool) {
	return work.FindPause(r.options.State.View(), name)
}

// keepPauses stores a change of the pauses, so that a restart does not end them.
func (r *Runtime) keepPauses(ctx context.Context, change func(*state.Tx) error) error {
	_, err := state.Do(ctx, r.options.State, func(tx *state.Tx) (struct{}, error) { return struct{}{}, change(tx) })
	return err
}

// forgetPauses ends the pauses of providers that are no longer configured, because a provider of the same name that is
// added later is a different one. If the store fails, the next configuration or the next start tries again. Where
// several processes share the state, it does nothing, because another process may have the provider.
func (r *Runtime) forgetPauses(ctx context.Context) {
	if r.options.State.Several() {
		return
	}
	var gone []string
	for _, p := range work.ListPauses(r.options.State.View()) {
		if r.provider(p.Provider) == nil {
			gone = append(gone, p.Provider)
		}
	}
	if len(gone) == 0 {
		return
	}
	err := r.keepPauses(ctx, func(tx *state.Tx) error {
		for _, name := range gone {
			work.EndPause(tx, name)
		}
		return nil
	})
	if err != nil {
		r.options.Logger.Warn("pauses of removed providers could not be ended", "providers", gone, "cause", err)
		return
	}
	r.options.Logger.Info("pauses of removed providers ended", "providers", gone)
}
