package kit

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// registryBuckets is how many maps the library's registry of processes is left
// with, each of 32 shards. It must divide the library's own number, 1024: those
// are 32,768 maps, which come to 11 MiB once each has held an actor, and which
// every garbage collection walks through.
const registryBuckets = 16

// shrinkRegistry must be called before there is anybody else who uses r.
func shrinkRegistry(r *actor.ProcessRegistryValue) {
	all := r.LocalPIDs.LocalPIDs
	if len(all)%registryBuckets != 0 {
		return // another version of the library
	}
	r.LocalPIDs.LocalPIDs = slices.Clone(all[:registryBuckets])
	for _, bucket := range all[registryBuckets:] {
		if bucket.IsEmpty() {
			continue
		}
		for id, process := range bucket.Items() {
			r.LocalPIDs.GetBucket(id).Set(id, process)
		}
	}
}
