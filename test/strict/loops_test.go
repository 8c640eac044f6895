package strict

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/text"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/providers/upstream"
	"stagedoor/test/cases"
)

var clientShapes = []dialogue.Shape{
	dialoguetest.Chat, dialoguetest.Responses, dialoguetest.Messages, dialoguetest.Gemini,
}

// gateway runs requests for text without HTTP in front of it.
type gateway struct {
	t       *testing.T
	sys     *kit.System
	engine  *engine.Engine
	service *text.Service
	upAt    map[string]*engine.Provider
}

func newGateway(t *testing.T, sys *kit.System) *gateway {
	g := &gateway{t: t, sys: sys, upAt: map[string]*engine.Provider{}}
	env := dialoguetest.NewEnv(1, strings.Repeat("i", 40))
	env.Now = time.Now
	var err error
	g.engine, err = engine.New(engine.Options{System: sys, Now: env.Now,
		Providers: func(name string) *engine.Provider { return g.upAt[name] }})
	if err != nil {
		t.Fatal(err)
	}
	g.service = text.New(g.engine, env, registry.All, nil)
	return g
}

// add makes an upstream a provider of its own.
func (g *gateway) add(v *vendor) {
	spec := &catalog.Provider{Name: v.name, Shape: v.shape, BaseURL: "http://" + v.name + ".test",
		APIKeys: []string{"k"}}
	client, err := upstream.New(upstream.Options{BaseURL: spec.BaseURL, APIKeys: spec.APIKeys, Transport: v})
	if err != nil {
		g.t.Fatal(err)
	}
	limiter, err := throttle.Spawn(g.sys, "p/"+v.name, throttle.Config{})
	if err != nil {
		g.t.Fatal(err)
	}
	g.upAt[v.name] = &engine.Provider{Spec: spec, Limiter: limiter, Client: client}
}

// ask sends a client's request to the vendors in order and returns the reply.
func (g *gateway) ask(c *client, order ...*vendor) (object, error) {
	var specs []catalog.Provider
	m := catalog.Model{Pattern: "m", MaxOutputTokens: 4096}
	for _, v := range order {
		specs = append(specs, *g.upAt[v.name].Spec)
		m.Fallback = append(m.Fallback, catalog.Route{Provider: v.name, Model: v.model})
	}
	m.Targets, m.Fallback = m.Fallback[:1], m.Fallback[1:]
	all, mistakes := catalog.New(specs, []catalog.Model{m})
	if len(mistakes) > 0 {
		g.t.Fatal(mistakes)
	}
	entry, _ := all.Resolve("m")
	in, mode := shapes.Params{Header: http.Header{}}, shapes.Whole
	if c.shape == dialoguetest.Gemini {
		in.Model, in.Stream = "m", c.stream
	}
	if c.stream {
		mode = shapes.Stream
	}
	inbound, body := registry.ByName()[c.shape], c.body()
	head, err := inbound.Check(body, in)
	if err != nil {
		return nil, fmt.Errorf("the gateway refuses the request: %w", err)
	}
	reply := g.service.Begin(context.Background(), &text.Request{
		ID: "r", Inbound: inbound, Mode: mode, In: in, Head: head, Body: body,
		Plan: entry.Plan(func(int) int { return 0 }), Key: "key", Owner: "key:key", Class: throttle.Normal,
	})
	var got []byte
	for chunk := range reply.Chunks() {
		if chunk.Err != nil {
			err = chunk.Err
			continue
		}
		got = append(got, chunk.Data.B...)
		chunk.Data.Free()
	}
	if err != nil {
		return nil, err
	}
	if !c.stream {
		var whole object
		decoder := json.NewDecoder(bytes.NewReader(got))
		decoder.UseNumber()
		err := decoder.Decode(&whole)
		return whole, err
	}
	events, err := cases.Decode(got)
	if err != nil {
		return nil, err
	}
	folded, bad := cases.Fold(cases.Shape(c.shape), events)
	if len(bad) > 0 || cases.Failed(cases.Shape(c.shape), events) {
		return nil, fmt.Errorf("the stream: %v %.300s", bad, got)
	}
	return folded, nil
}

// tally counts loops by how they went. again counts those in which a vendor refused the reasoning of
// another one of the same shape, so that the request was sent again without it.
type tally struct{ whole, lossy, broken, again int }

// play runs a loop of eight turns. order returns the vendors of a turn in the order in which they
// are tried; all but the last fail.
func (g *gateway) play(c *client, all []*vendor, order func(turn int) []*vendor) (lost []string, broken error) {
	c.say("go")
	for turn := range turns {
		tried := order(turn)
		for i, v := range tried {
			v.turn, v.fails, v.shown = turn, 0, c.shape != dialoguetest.Chat
			if i < len(tried)-1 {
				v.fails = 503
			}
		}
		reply, err := g.ask(c, tried...)
		if err == nil {
			err = c.take(reply, planned(turn))
		}
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", turn, err)
		}
		if len(planned(turn).calls) == 0 {
			c.say(fmt.Sprintf("and now %d", turn))
		}
	}
	for _, v := range all {
		lost = append(lost, v.lost...)
	}
	return lost, nil
}

// An agent's loop of eight turns goes on to its end, whatever the client's shape, the vendors and the
// changes between them, and each vendor gets back its own reasoning. With -short every fifth loop is played.
func TestLoopsOfEightTurnsAreWhole(t *testing.T) {
	all := []client{{thinks: true}, {stream: true}, {thinks: true, stream: true}, {}}
	counts, number := map[string]*tally{}, 0
	for _, change := range []string{"one vendor", "switch", "failover"} {
		counts[change] = &tally{}
		for i, first := range kinds {
			for j, second := range kinds {
				if change == "one vendor" && i != j {
					continue
				}
				for _, shape := range clientShapes {
					forms := all
					if change != "one vendor" { // each pair of vendors in half of the forms
						half := 2 * ((i + j + len(change)) % 2)
						forms = all[half : half+2]
					}
					for _, form := range forms {
						name := fmt.Sprintf("%s/%s/%s-%s/thinks=%t,stream=%t", change, shape, first.name, second.name,
							form.thinks, form.stream)
						if number++; !testing.Short() || number%5 == 0 {
							playOne(t, name, counts[change], pair{first, second}, shape, form, change)
						}
					}
				}
			}
		}
	}
	for _, change := range []string{"one vendor", "switch", "failover"} {
		n := counts[change]
		t.Logf("%-10s: %d whole, %d lossy, %d broken (%d sent again)", change, n.whole, n.lossy, n.broken, n.again)
		if change != "one vendor" && n.again == 0 {
			t.Errorf("%s: no vendor refused the reasoning of another one of its shape", change)
		}
		if n.lossy+n.broken > 0 || n.whole == 0 {
			t.Errorf("%s: %d loops are lossy and %d broken", change, n.lossy, n.broken)
		}
	}
}

// LangChain drops the reasoning of chat completions. The vendors get it back all the same, by the ids of the calls.
func TestLoopsOfClientsThatDropReasoningAreWhole(t *testing.T) {
	for _, change := range []string{"one vendor", "switch", "failover"} {
		n := &tally{}
		for _, form := range []client{{drops: true}, {drops: true, stream: true}} {
			for _, second := range []kind{kinds[1], kinds[3]} {
				playOne(t, change, n, pair{kinds[1], second}, dialoguetest.Chat, form, change)
			}
		}
		if n.whole != 4 || kinds[1].name != thinkingChat {
			t.Errorf("%s: %+v", change, *n)
		}
	}
}

// pair is the vendors of a loop.
type pair struct{ first, second kind }

func playOne(t *testing.T, name string, n *tally, p pair, shape dialogue.Shape, form client, change string) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		g, first, second := newGateway(t, sys), p.first, p.second
		a, b := newVendor(first, first.name[:1]+"a"), newVendor(second, second.name[:1]+"b")
		g.add(a)
		g.add(b)
		c := &client{shape: shape, thinks: form.thinks, stream: form.stream, drops: form.drops}
		lost, broken := g.play(c, []*vendor{a, b}, func(turn int) []*vendor {
			pair := []*vendor{a, b}
			switch {
			case change == "one vendor":
				return pair[:1]
			case change == "switch":
				return pair[turn%2 : turn%2+1]
			case turn%2 == 0:
				return []*vendor{b, a}
			}
			return pair
		})
		if len(a.refused)+len(b.refused) > 0 {
			n.again++
			if first.shape != second.shape {
				broken = errors.Join(broken, errors.New("a request was refused"))
			}
		}
		switch {
		case broken != nil:
			n.broken++
			t.Logf("BROKEN %s: %.700v\n  %.700s %.700s", name, broken, a.refused, b.refused)
		case len(lost) > 0:
			n.lossy++
			t.Logf("LOSSY %s: %.1500s", name, lost[0])
		default:
			n.whole++
		}
	})
}
