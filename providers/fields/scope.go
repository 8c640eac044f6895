package fields

import "bytes"

// scope counts the names of one object and finds repeated ones.
type scope struct {
	count int
	base  int    // the index of its first name in Reader.names
	seen  uint64 // a Bloom filter, so that most new names are compared with no other
	many  map[string]struct{}
}

// fewNames is the number of names that are compared one by one. Beyond it a map keeps the work linear for any number of
// names that a hostile client sends.
const fewNames = 32

// repeated reports whether the object has name already, and adds it.
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

// met compares name with all names of its object. It is called only if the filter cannot rule out a
// repetition.
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

// sum returns a hash that differs for most names of one object.
func sum(name []byte) uint {
	n := uint(len(name))
	if n == 0 {
		return 0
	}
	return n + 7*uint(name[0]) + 13*uint(name[n-1]) + 5*uint(name[n/2])
}
