package throttle

// KeyCount returns how many keys a table holds.
func KeyCount(k *Keys) (n int) {
	for i := range k.shards {
		n += len(k.shards[i].keys)
	}
	return n
}
