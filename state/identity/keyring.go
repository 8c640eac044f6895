package identity

import (
	"bytes"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"stagedoor/state"
)

// keyring finds the committed keys by their hash, which every request does, and by their user. It
// takes 8 bytes for each key and list, where an index of memdb would take 450, and there may be a
// hundred thousand keys. Only the writer changes it. Any goroutine may read it.
type keyring struct {
	byHash, byUser ring
	// previous has the keys with a previous secret by its hash. They are few. The map is replaced and never modified.
	previous atomic.Pointer[map[state.Hash]*Key]
	// recorded has the keys with a RecordedUntil by their ids, likewise.
	recorded atomic.Pointer[map[string]*Key]
}

// ring holds keys in 256 sorted lists. A list is replaced and never modified, so a lookup takes no
// lock, and a change copies only one list.
type ring [256]atomic.Pointer[[]*Key]

// fill adds the stored keys when the state is opened.
func (r *keyring) fill(all iter.Seq[*Key]) {
	var byHash, byUser [256][]*Key
	previous, recorded := map[state.Hash]*Key{}, map[string]*Key{}
	for k := range all {
		if k.Previous != nil {
			previous[k.Previous.Hash] = k
		}
		if k.RecordedUntil != nil {
			recorded[k.ID] = k
		}
		byHash[k.Hash[0]] = append(byHash[k.Hash[0]], k)
		if k.User != "" {
			byUser[userPart(k.User)] = append(byUser[userPart(k.User)], k)
		}
	}
	r.previous.Store(&previous)
	r.recorded.Store(&recorded)
	for i := range byHash {
		slices.SortFunc(byHash[i], compareHashes)
		slices.SortFunc(byUser[i], compareUsers)
		// A clone has no room that is not used.
		hashes, users := slices.Clone(byHash[i]), slices.Clone(byUser[i])
		r.byHash[i].Store(&hashes)
		r.byUser[i].Store(&users)
	}
}

// apply follows one change of the table. A key that stays is replaced in one step, and one that moves is added at its
// new place first, because a request that looks for it meanwhile must find it.
func (r *keyring) apply(before, after *Key) {
	if before != nil && before.Previous != nil || after != nil && after.Previous != nil {
		previous := maps.Clone(*r.previous.Load())
		if before != nil && before.Previous != nil {
			delete(previous, before.Previous.Hash)
		}
		if after != nil && after.Previous != nil {
			previous[after.Previous.Hash] = after
		}
		r.previous.Store(&previous)
	}
	if before != nil && before.RecordedUntil != nil || after != nil && after.RecordedUntil != nil {
		recorded := maps.Clone(*r.recorded.Load())
		if before != nil {
			delete(recorded, before.ID)
		}
		if after != nil && after.RecordedUntil != nil {
			recorded[after.ID] = after
		}
		r.recorded.Store(&recorded)
	}
	if after != nil {
		r.byHash.put(after.Hash[0], after, compareHashes)
		if after.User != "" {
			r.byUser.put(userPart(after.User), after, compareUsers)
		}
	}
	if before == nil {
		return
	}
	if after == nil || compareHashes(before, after) != 0 {
		r.byHash.remove(before.Hash[0], before, compareHashes)
	}
	if after == nil || compareUsers(before, after) != 0 {
		r.byUser.remove(userPart(before.User), before, compareUsers)
	}
}

// findKey returns the key with this hash.
func (r *keyring) findKey(hash state.Hash) (Key, bool) {
	part := r.byHash.part(hash[0])
	at, found := slices.BinarySearchFunc(part, hash,
		func(k *Key, hash state.Hash) int { return bytes.Compare(k.Hash[:], hash[:]) })
	if !found {
		return Key{}, false
	}
	return *part[at], true
}

// findPrevious returns the key with this hash of its previous secret, whether it is still accepted or not.
func (r *keyring) findPrevious(hash state.Hash) (Key, bool) {
	if k := (*r.previous.Load())[hash]; k != nil {
		return *k, true
	}
	return Key{}, false
}

// keysOf returns the keys of a user in the order of their ids.
func (r *keyring) keysOf(user string) []Key {
	part := r.byUser.part(userPart(user))
	at, _ := slices.BinarySearchFunc(part, user, func(k *Key, user string) int { return strings.Compare(k.User, user) })
	var found []Key
	for ; at < len(part) && part[at].User == user; at++ {
		found = append(found, *part[at])
	}
	return found
}

// manyKeys is the number of keys after which hasOthers does not look at more.
const manyKeys = 1000

// hasOthers reports whether there is a key of another owner. It returns true as well after manyKeys keys of this owner,
// because a search through all keys would take too long.
func (r *keyring) hasOthers(owner state.Owner) bool {
	seen := 0
	for i := range r.byHash {
		for _, k := range r.byHash.part(byte(i)) {
			if seen++; seen > manyKeys || state.OwnerOf(k.ID, k.User) != owner {
				return true
			}
		}
	}
	return false
}

func compareHashes(a, b *Key) int { return bytes.Compare(a.Hash[:], b.Hash[:]) }

// compareUsers orders keys by user and id.
func compareUsers(a, b *Key) int {
	if c := strings.Compare(a.User, b.User); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

var userSeed = maphash.MakeSeed()

// userPart returns the number of the list that has the keys of a user.
func userPart(user string) byte { return byte(maphash.String(userSeed, user)) }

// part returns one of the lists, which must not be changed.
func (r *ring) part(i byte) []*Key {
	if part := r[i].Load(); part != nil {
		return *part
	}
	return nil
}

// put adds k, or replaces the key at the same place.
func (r *ring) put(i byte, k *Key, compare func(a, b *Key) int) {
	part := r.part(i)
	at, found := slices.BinarySearchFunc(part, k, compare)
	next := slices.Clone(part)
	if found {
		next[at] = k
	} else {
		next = slices.Insert(next, at, k)
	}
	r[i].Store(&next)
}

// remove replaces a list by one without the key.
func (r *ring) remove(i byte, k *Key, compare func(a, b *Key) int) {
	at, found := slices.BinarySearchFunc(r.part(i), k, compare)
	if !found {
		return
	}
	next := slices.Delete(slices.Clone(r.part(i)), at, at+1)
	r[i].Store(&next)
}
