package throttle

// KeyCount is how many keys a table remembers.
func KeyCount(k *Keys) (n int) {
	for i := range k.shards {
		n += len(k.shards[i].keys)
	}
	return n
}
