package kit

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

// registryBuckets is the number of maps that the library's registry of processes keeps, each with 32 shards. It must
// divide the library's own number, 1024. That would be 32,768 maps, which take 11 MiB once each has held an actor, and
// which every garbage collection visits.
const registryBuckets = 16

// shrinkRegistry reduces the maps of the registry to registryBuckets. It must be called before any other use of r. It
// does nothing if the library has another number of maps.
func shrinkRegistry(r *actor.ProcessRegistryValue) {
	all := r.LocalPIDs.LocalPIDs
	if len(all)%registryBuckets != 0 {
		return // the library has another version
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
