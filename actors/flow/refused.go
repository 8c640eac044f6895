package flow

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"stagedoor/providers/dialogue"
)

const (
	// Of the requests of a key that are refused in one hour, the first refusedEach are in the log of requests one by
	// one. After those, each one is that doubles their number. So a client that repeats a request for days takes no
	// more than some thousand places of the log, and the requests of others stay in it.
	refusedEach = 100
	// maxRefusedKeys bounds the keys that are counted in an hour, and those of earlier hours. Requests of further keys
	// are not in the log.
	maxRefusedKeys = 4096
)

// refusals counts the requests of each key that were refused in the present hour, before they began.
type refusals struct {
	mu   sync.Mutex
	hour int64 // since 1970
	keys map[string]*refusedKey
	// earlier has, for keys without a refused request in this hour, the number that is in no record yet.
	earlier map[string]int64
}

// begin begins an hour. Of the numbers that are in no record yet, those of the last hour are kept first, because keys
// that were not seen since may be deleted.
func (r *refusals) begin(hour int64) {
	earlier := make(map[string]int64)
	for key, k := range r.keys {
		if k.left > 0 {
			earlier[key] = k.left
		}
	}
	for key, left := range r.earlier {
		if len(earlier) >= maxRefusedKeys {
			break
		}
		earlier[key] = left
	}
	r.hour, r.keys, r.earlier = hour, make(map[string]*refusedKey), earlier
}

// refusedKey counts the refused requests of a key, and those of them that are in no record yet.
type refusedKey struct{ all, left int64 }

// admit counts a refused request. It reports whether the log may have it, and how many earlier ones it stands for.
func (r *refusals) admit(key string, now time.Time) (left int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if hour := now.Unix() / 3600; hour != r.hour || r.keys == nil {
		r.begin(hour)
	}
	k := r.keys[key]
	if k == nil {
		if len(r.keys) >= maxRefusedKeys {
			return 0, false
		}
		k = &refusedKey{left: r.earlier[key]}
		delete(r.earlier, key)
		r.keys[key] = k
	}
	k.all++
	times := k.all / refusedEach
	if doubled := k.all%refusedEach == 0 && times&(times-1) == 0; k.all > refusedEach && !doubled {
		k.left++
		return 0, false
	}
	left, k.left = k.left, 0
	return left, true
}

// Refused hands a request with a known key that was refused before it began to the function of SetRecorder. Such a
// request was never in flight, has no attempts and costs nothing. If a key has many of them, only some are handed over,
// and the texts of their errors say how many were left out before them.
func (r *Registry) Refused(about About, err *dialogue.Error) {
	if r == nil || about.Key == "" {
		return // strangers could fill the log
	}
	to := r.recorder.Load()
	if to == nil || !to.keeps() {
		return
	}
	now := r.now()
	left, ok := r.refusals.admit(about.Key, now)
	if !ok {
		r.leftOut.Add(1)
		return
	}
	about.Model = shown(about.Model)
	q := &Request{About: about, began: now, registry: r, result: Result{Usage: dialogue.NoUsage}}
	q.result.Fail(err)
	if left > 0 {
		q.result.Text = strings.TrimSpace(fmt.Sprintf("%s [%d refused requests before this one are not in the log]",
			q.result.Text, left))
	}
	q.mark(Ended, now)
	to.record(q)
}

// LeftOut returns how many refused requests were not handed to the function of SetRecorder, because their key had too
// many of them.
func (r *Registry) LeftOut() int64 { return r.leftOut.Load() }

// shown copies as much of a text of a client as is shown.
func shown(text string) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxText)], "\ufffd"))
}
