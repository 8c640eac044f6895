package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"stagedoor/test/harness"
)

// options are the flags of a comparison.
type options struct {
	measure, warm time.Duration
	clients       int
	rounds        int
	held          int
	binary        string
	only          *regexp.Regexp
}

// A target is a program under load.
type target struct {
	name  string
	url   string
	pid   int
	close func() error
}

// A scenario is a kind of work and who can do it. The first target is what the
// others are compared with.
type scenario struct {
	name    string
	load    load
	targets []string
	hold    bool // many slow streams instead of a closed loop
}

// scenarios returns what is compared, as far as the flag -only selects it.
func scenarios(o options) []scenario {
	chat, crossing := []string{"peek", "plain", "stagedoor"}, []string{"xlate", "stagedoor"}
	all := []scenario{
		{name: "chat-1k", load: load{shape: chatShape, model: "whole-1024", request: 1 << 10}, targets: chat},
		{name: "chat-64k", load: load{shape: chatShape, model: "whole-4096", request: 64 << 10}, targets: chat},
		{name: "chat-stream-100", load: load{shape: chatShape, model: "stream-100-0", request: 1 << 10, tokens: 100},
			targets: chat},
		{name: "messages-chat-1k", load: load{shape: messagesShape, model: "whole-1024", request: 1 << 10},
			targets: crossing},
		{name: "messages-chat-stream-100",
			load: load{shape: messagesShape, model: "stream-100-0", request: 1 << 10, tokens: 100}, targets: crossing},
	}
	for _, s := range all[:3] {
		// The same with a price on it, against the same without.
		s.name, s.targets = s.name+"-paid", []string{"stagedoor", "paid"}
		all = append(all, s)
	}
	if o.held > 0 {
		all = append(all, scenario{name: fmt.Sprintf("hold-%d", o.held), hold: true, targets: chat,
			load: load{shape: chatShape, model: "stream-12-500", request: 1 << 10, tokens: 12}})
	}
	return slices.DeleteFunc(all, func(s scenario) bool { return !o.only.MatchString(s.name) })
}

// compare runs every scenario against its targets and prints a table each.
func compare(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "stagedoor-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.binary == "" {
		if o.binary, err = harness.Build(ctx, dir, "./cmd/stagedoor"); err != nil {
			return err
		}
	}
	upstream, err := startSelf("upstream", "upstream")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, upstream.close()) }()
	for _, s := range scenarios(o) {
		results, err := s.run(ctx, o, upstream.url)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		s.print(os.Stdout, results)
	}
	return nil
}

// run measures each target once a round. Targets are fresh for every scenario, and
// for every round when memory is what counts.
func (s scenario) run(ctx context.Context, o options, upstream string) (map[string][]result, error) {
	results := map[string][]result{}
	order := slices.Clone(s.targets)
	for range o.rounds {
		for _, name := range order {
			r, err := s.measure(ctx, o, name, upstream)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			results[name] = append(results[name], r)
		}
		slices.Reverse(order)
	}
	return results, nil
}

// measure starts one target and loads it.
func (s scenario) measure(ctx context.Context, o options, name, upstream string) (r result, err error) {
	t, err := start(name, o.binary, upstream)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if s.hold {
		return s.load.hold(ctx, t, o.held)
	}
	return s.load.closedLoop(ctx, t, o)
}

// start runs a target in front of the upstream.
func start(name, binary, upstream string) (*target, error) {
	if name != "stagedoor" && name != "paid" {
		return startSelf(name, "floor", "-kind", name, "-upstream", upstream)
	}
	config := harness.CatchAll(harness.Provider{Shape: "chat", BaseURL: upstream + "/v1",
		APIKeys: []string{"sk-upstream"}})
	config.Keys = []harness.Key{{Key: benchKey, Name: "bench"}}
	forget := func() error { return nil }
	if name == "paid" {
		var err error
		if forget, err = charge(&config); err != nil {
			return nil, err
		}
	}
	g, err := harness.Launch(binary, config)
	if err != nil {
		return nil, errors.Join(err, forget())
	}
	return &target{name: name, url: g.URL, pid: g.PID(),
		close: func() error { return errors.Join(g.Stop(), forget()) }}, nil
}
