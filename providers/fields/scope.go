package fields

import "bytes"

// scope counts the names of one object and finds those that occur twice.
type scope struct {
	count int
	base  int    // where its names start in Reader.names
	seen  uint64 // a Bloom filter: most names are new, and are not compared with any
	many  map[string]struct{}
}

// fewNames is how many names are compared one by one. Beyond it a map keeps the
// work linear, however many names a hostile client sends.
const fewNames = 32

// repeated reports whether name has been met in the object, and notes it.
func (r *Reader) repeated(in *scope, name []byte) bool {
	bit := uint64(1) << (sum(name) & 63)
	if in.seen&bit != 0 && r.met(in, name) {
		return true
	}
	in.seen |= bit
	if in.many != nil {
		in.many[string(name)] = struct{}{}
		return false
	}
	r.names = append(r.names, name)
	if all := r.names[in.base:]; len(all) > fewNames {
		in.many = make(map[string]struct{}, 2*len(all))
		for _, n := range all {
			in.many[string(n)] = struct{}{}
		}
		r.names = r.names[:in.base]
	}
	return false
}

func (r *Reader) met(in *scope, name []byte) bool {
	if in.many != nil {
		_, met := in.many[string(name)]
		return met
	}
	for _, n := range r.names[in.base:] {
		if bytes.Equal(n, name) {
			return true
		}
	}
	return false
}

// sum tells most names of one object apart.
func sum(name []byte) uint {
	n := uint(len(name))
	if n == 0 {
		return 0
	}
	return n + 7*uint(name[0]) + 13*uint(name[n-1]) + 5*uint(name[n/2])
}
