package kit_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
)

// node spawns its children when it starts and panics when a message asks for it.
type node struct {
	system   *kit.System
	children map[string]*actor.Props
}

func (n *node) Receive(c actor.Context) {
	switch c.Message().(type) {
	case *actor.Started:
		for name, props := range n.children {
			if _, err := n.system.SpawnChild(c, props, name); err != nil {
				panic(err)
			}
		}
	case *fall:
		_ = make([]int, 0)[len(n.children)]
	}
}

type fall struct{}

func TestTreeShowsActorsWithTheirFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys := kit.NewSystem(kit.Options{Logger: slog.New(slog.DiscardHandler), MaxIdle: -1})
		leaf := sys.Props("leaf", func() actor.Actor { return &node{system: sys} })
		crowd := sys.Props("crowd", func() actor.Actor { return &node{system: sys} }, kit.CountedByKind())
		top := sys.Props("top", func() actor.Actor {
			return &node{system: sys, children: map[string]*actor.Props{"p/one": leaf, "r": crowd}}
		})
		pid, err := sys.SpawnUnique(top, "top")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		all := sys.Actors()
		if len(all) != 2 || all[0].Name != "top" || all[0].Parent != "" || all[1].Name != "p/one" ||
			all[1].Parent != all[0].ID ||
			all[1].Kind != "leaf" {
			t.Fatalf("tree: %+v", all)
		}
		sys.Send(&actor.PID{Address: pid.Address, Id: all[1].ID}, &fall{})
		time.Sleep(time.Second) // the back-off
		synctest.Wait()
		one := sys.Actors()[1]
		if one.Restarts != 1 || one.Last == nil || one.Last.Message != "*kit_test.fall" ||
			!strings.Contains(one.Last.Reason, "out of range") {
			t.Errorf("after a failure: %+v, %+v", one, one.Last)
		}
		if got := sys.Stats().Kind("leaf").Last; got == nil {
			t.Error("the kind does not know of the failure")
		}
		if err := sys.StopActor(context.Background(), pid); err != nil {
			t.Fatal(err)
		}
		if left := sys.Actors(); len(left) != 0 {
			t.Errorf("listed after their stop: %+v", left)
		}
		if err := sys.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // the library's timer
	})
}
