package engine

import (
	"maps"
	"slices"
	"time"

	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/upstream"
)

// Provider is a provider at run time: its configuration, the limiter in front of it and the client that calls it.
type Provider struct {
	Spec    *catalog.Provider
	Limiter *throttle.Client
	Client  *upstream.Client
}

// Providers returns a provider of the configuration in force, or nil.
type Providers func(name string) *Provider

// SpareKeys returns how many of the provider's keys can be used for a model after one of them was refused. It is 0 if
// that was the only one.
func (p *Provider) SpareKeys(now time.Time, model string) int {
	if p.Client == nil {
		return 0
	}
	keys := p.Client.Keys()
	usable, all := keys.Usable(model, now), len(keys.All())
	if usable == all {
		return max(all-1, 0) // the refused one does not rest yet
	}
	return usable
}

// Judge returns how the limiter counts a failed call for a model, and for how long the model should not be called. A
// refusal of one key says nothing about the others, and a request that can never fit says nothing about other requests.
func (p *Provider) Judge(f *upstream.Failure, model string, now time.Time) (throttle.Kind, time.Duration) {
	refused := f.Class == upstream.RateLimited || f.Class == upstream.Credential
	if f.TooLarge || refused && p.SpareKeys(now, model) > 0 {
		return throttle.CallerFault, 0
	}
	wait := f.RetryAfter
	switch rests := f.Class == upstream.RateLimited || f.Class == upstream.Overloaded; {
	case !rests || wait == 0 && f.Class == upstream.Overloaded || p.Client == nil:
	case p.SpareKeys(now, model) > 0:
		wait = 0 // another key may be used at once
	default:
		if rest := p.Client.Keys().Rest(model, now); rest > 0 {
			wait = rest // until the first key may be used again
		}
	}
	return throttle.KindOf(f.Class), wait
}

// Total returns how long a request may take from its beginning to its end, with all attempts. A provider that is no
// longer configured has the default.
func (p *Provider) Total() time.Duration {
	if p == nil || p.Spec.Timeouts.Total == 0 {
		return upstream.DefaultTimeouts.Total
	}
	return p.Spec.Timeouts.Total
}

// TakeKey returns the key whose turn it is for a model, or "" if the provider has none.
func (p *Provider) TakeKey(now time.Time, model string) string {
	keys := p.Client.Keys()
	if only, ok := keys.Only(); ok {
		return only
	}
	return keys.Take(now, model)
}

// JudgeKey records that a call with a key failed, so that the key rests if the provider refused it. It does nothing
// without a failure or a key.
func (p *Provider) JudgeKey(key, model string, f *upstream.Failure, now time.Time) {
	if f != nil && key != "" {
		p.Client.Keys().RecordFailure(key, model, f, now)
	}
}

// Secrets returns the provider's secrets, which must not appear in an error that a client reads, nor in a recording.
func (p *Provider) Secrets() []string {
	if p.Client == nil {
		return nil
	}
	return p.Client.Secrets()
}

// Unrecorded returns the texts that are removed from recordings, because a provider may repeat them in its replies: the
// keys, and the values of the configured headers.
func (p *Provider) Unrecorded() []string {
	return slices.AppendSeq(slices.Clone(p.Secrets()), maps.Values(p.Spec.Headers))
}
