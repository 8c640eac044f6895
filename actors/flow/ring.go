package flow

import "sync/atomic"

// ring remembers the last requests put into it. Whoever puts one in never waits.
type ring struct {
	slots []atomic.Pointer[Request]
	next  atomic.Uint64
}

func newRing(size int) ring { return ring{slots: make([]atomic.Pointer[Request], size)} }

// put remembers a request, and returns the one that is forgotten for it.
func (r *ring) put(req *Request) (gone *Request) {
	return r.slots[(r.next.Add(1)-1)%uint64(len(r.slots))].Swap(req)
}

// all appends what is remembered to buffer.
func (r *ring) all(buffer []*Request) []*Request {
	for i := range r.slots {
		if req := r.slots[i].Load(); req != nil {
			buffer = append(buffer, req)
		}
	}
	return buffer
}
