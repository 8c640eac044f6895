package kit

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// After it has shrunk, the registry must find its earlier entries and later ones.
func TestASmallerRegistryLosesNoActor(t *testing.T) {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	r := system.ProcessRegistry
	var before []*actor.PID
	for i := range 3000 {
		pid, ok := r.Add(system.DeadLetter, fmt.Sprint("early", i))
		if !ok {
			t.Fatalf("%v is there already", pid)
		}
		before = append(before, pid)
	}
	shrinkRegistry(r)
	if n := len(r.LocalPIDs.LocalPIDs); n != registryBuckets {
		t.Fatalf("%d buckets", n)
	}
	late, _ := r.Add(system.DeadLetter, "late")
	for _, pid := range append(before, late) {
		if _, ok := r.Get(pid); !ok {
			t.Fatalf("%v is lost", pid)
		}
		r.Remove(pid)
		if _, ok := r.Get(pid); ok {
			t.Fatalf("%v is still there", pid)
		}
	}
}
