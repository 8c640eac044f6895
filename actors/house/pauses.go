package house

import (
	"context"

	"stagedoor/state"
)

// SetPaused holds a provider's requests in its queue, or lets them go on. Those in
// flight are not touched, and deadlines count on. It is kept before it counts, and
// lasts until it is ended or the provider is gone from the configuration. One that is
// not there is state.ErrNotFound.
func (h *House) SetPaused(ctx context.Context, name string, paused bool) error {
	h.configuring.Lock()
	defer h.configuring.Unlock()
	p := h.provider(name)
	if p == nil {
		return state.ErrNotFound
	}
	err := h.keepPauses(ctx, func(tx *state.Tx) error {
		if paused {
			return tx.Pause(name)
		}
		tx.EndPause(name)
		return nil
	})
	switch {
	case err != nil:
		return err
	case paused:
		p.Gate.Pause()
	default:
		p.Gate.Resume()
	}
	return nil
}

// Pause finds the pause of a provider.
func (h *House) Pause(name string) (state.Pause, bool) { return h.options.State.View().Pause(name) }

func (h *House) keepPauses(ctx context.Context, change func(*state.Tx) error) error {
	_, err := state.Do(ctx, h.options.State, func(tx *state.Tx) (struct{}, error) { return struct{}{}, change(tx) })
	return err
}

// forgetPauses ends the pauses of providers that are not there any more: one of the
// same name that is added later is another. One that cannot be ended yet is ended
// with the next configuration, at the latest with the next start.
func (h *House) forgetPauses(ctx context.Context) {
	var gone []string
	for _, p := range h.options.State.View().Pauses() {
		if h.provider(p.Provider) == nil {
			gone = append(gone, p.Provider)
		}
	}
	if len(gone) == 0 {
		return
	}
	err := h.keepPauses(ctx, func(tx *state.Tx) error {
		for _, name := range gone {
			tx.EndPause(name)
		}
		return nil
	})
	if err != nil {
		h.options.Logger.Warn("pauses of removed providers could not be ended", "providers", gone, "cause", err)
		return
	}
	h.options.Logger.Info("pauses of removed providers ended", "providers", gone)
}
