package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/panics"

	jsonv2 "github.com/go-json-experiment/json"

	"stagedoor/state"
	"stagedoor/state/recordings"
)

const (
	// tidyEvery is the time after which exchanges that are too old are removed at the latest.
	tidyEvery = 5 * time.Minute
	// warnEvery is the time between two warnings of a fault that lasts.
	warnEvery = 30 * time.Second
	// closing bounds the time in which Close writes what is in the queue.
	closing = 2 * time.Second
	// maxText bounds each body of an exchange that is kept, and maxTexts all bodies of it.
	maxText, maxTexts = 512 << 10, 4 << 20
)

// KeeperOptions configure a Keeper.
type KeeperOptions struct {
	Logger   *slog.Logger
	Recorder *Recorder
	// Dir is the directory of the files.
	Dir    string
	Limits recordings.Limits
	// Recorded returns the keys whose exchanges are kept now, and until when. Stays reports whether those of a key that
	// are kept already may stay. Changed returns a channel that is closed when either may return something else.
	Recorded func() map[string]time.Time
	Stays    func(key string) bool
	Changed  func() <-chan struct{}
	// Room returns how many bytes of the disk may still be taken.
	Room func() int64
	Now  func() time.Time
}

// Keeper keeps the exchanges of the keys for which that is switched on. Its goroutine does all that touches the disk.
// A disk that is slow, full or broken costs exchanges, and never a request.
type Keeper struct {
	options KeeperOptions
	sink    sink
	store   atomic.Pointer[recordings.Store] // nil until the goroutine has read the directory
	limits  atomic.Pointer[recordings.Limits]
	changed chan struct{} // holds a value if the limits have changed
	stop    chan struct{}
	writer  conc.WaitGroup
	written atomic.Int64
	warned  time.Time // of the writer
}

// StartKeeper starts the goroutine of a keeper. Close ends it.
func StartKeeper(o KeeperOptions) *Keeper {
	k := &Keeper{options: o, changed: make(chan struct{}, 1), stop: make(chan struct{})}
	k.sink.open()
	k.limits.Store(&o.Limits)
	k.writer.Go(k.run)
	return k
}

// Limits returns the bounds of what is kept. A Keep of 0 means that nothing is.
func (k *Keeper) Limits() recordings.Limits { return *k.limits.Load() }

// Limit changes the bounds. It does not wait until they hold.
func (k *Keeper) Limit(l recordings.Limits) {
	if *k.limits.Swap(&l) == l {
		return
	}
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Stats returns the numbers of exchanges that were kept, and that did not fit or could not be written, since the start.
func (k *Keeper) Stats() (written, dropped int64) { return k.written.Load(), k.sink.dropped.Load() }

// Find returns the exchange of a request that a key sent between two times, or state.ErrNotFound.
func (k *Keeper) Find(key, id string, from, to time.Time) (*Exchange, error) {
	store := k.store.Load()
	if store == nil || k.Limits().Keep == 0 {
		return nil, fmt.Errorf("a recorded exchange: %w", state.ErrNotFound)
	}
	if oldest := k.options.Now().Add(-k.Limits().Keep); from.Before(oldest) {
		from = oldest // what is too old may still be there for a while
	}
	data, err := store.Find(key, id, from, to)
	if err != nil {
		return nil, err
	}
	x := new(Exchange)
	return x, jsonv2.Unmarshal(data, x)
}

// Close writes what is in the queue, for a bounded time, and ends the goroutine.
func (k *Keeper) Close() error {
	close(k.stop)
	return k.writer.WaitAndRecover().AsError()
}

// run writes the exchanges of recorded keys until the keeper is closed. It is the keeper's goroutine, and it opens the
// directory itself, so that a start does not wait for that.
func (k *Keeper) run() {
	store, err := recordings.Open(k.options.Dir)
	if err != nil {
		k.warn("the directory of recordings was not read whole", err)
	}
	k.store.Store(store)
	defer k.options.Recorder.keep(nil, nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changed := k.options.Changed() // before what may change is read
		timer.Reset(k.follow())
		for again := false; !again; {
			select {
			case d := <-k.sink.out:
				k.write(d)
			case <-changed:
				again = true
			case <-k.changed:
				again = true
			case <-timer.C:
				again = true
			case <-k.stop:
				for until := time.Now().Add(closing); len(k.sink.out) > 0 && time.Now().Before(until); {
					k.write(<-k.sink.out)
				}
				k.sink.dropped.Add(int64(len(k.sink.out)))
				return
			}
		}
	}
}

// follow records the keys that are to be recorded, removes what may not stay, and returns when to do so again.
func (k *Keeper) follow() time.Duration {
	l := k.Limits()
	next, now := tidyEvery, k.options.Now()
	var until map[string]time.Time
	if l.Keep > 0 {
		until = k.options.Recorded()
		for _, end := range until {
			next = min(next, max(end.Sub(now), 0)+time.Millisecond)
		}
	}
	k.options.Recorder.keep(&k.sink, until)
	store := k.store.Load()
	if store.Empty() {
		return next
	}
	err := store.Retain(func(key string) bool { return l.Keep > 0 && k.options.Stays(key) })
	if err = errors.Join(err, store.Prune(now, l)); err != nil {
		k.warn("recordings were not removed", err)
		return min(next, warnEvery)
	}
	return next
}

// write keeps an exchange that has ended, or drops it. A panic is an error, because an exchange that cannot be written
// must not end the goroutine.
func (k *Keeper) write(d *Draft) {
	defer k.sink.room.Add(d.size)
	var err error
	crashed := panics.Try(func() { err = k.put(d) })
	if err = errors.Join(err, crashed.AsError()); err == nil {
		k.written.Add(1)
		return
	}
	k.sink.dropped.Add(1)
	k.warn("requests and replies of a recorded key were not kept", err)
}

// errNoRoom is the error of an exchange that is left out to leave room for the journal.
var errNoRoom = errors.New("too little room on the disk")

// put writes an exchange to the directory, with long bodies cut. It returns state.ErrNotFound if the key does not exist
// any more, and errNoRoom if the disk is nearly full.
func (k *Keeper) put(d *Draft) error {
	d.redactOnce()
	x := shorten(&d.x)
	data, err := json.Marshal(x)
	switch {
	case err != nil:
		return err
	case !k.options.Stays(d.key):
		return fmt.Errorf("the key: %w", state.ErrNotFound)
	case k.options.Room() < int64(len(data)):
		return errNoRoom
	}
	return k.store.Load().Put(d.key, x.ID, x.Began, data, k.Limits())
}

// broken stands for the error that ended a call.
const broken = "broken off"

// shorten returns a copy of an exchange in which long bodies are cut. The end of a cut one says so. It is done after
// secrets were replaced, because a half of one would not be found.
func shorten(of *Exchange) *Exchange {
	x := *of
	x.Attempts = cloneAttempts(of.Attempts)
	// What a page does not show and only a replay needs is left out.
	x.IDs, x.Times, x.Signatures = nil, nil, nil
	left := maxTexts
	cut := func(b *Bytes) {
		most := min(maxText, left)
		if left -= min(len(*b), most); len(*b) <= most {
			return
		}
		x.Shortened = true
		*b = append((*b)[:most:most], "\n[recording: "+strconv.Itoa(len(*b)-most)+" further bytes were not kept]"...)
	}
	for _, b := range []*Bytes{&x.Client.Body, &x.Reply.Body, &x.Reply.Failure, &x.Reply.Error} {
		cut(b)
	}
	for i := range x.Attempts {
		for j := range x.Attempts[i].Calls {
			c := &x.Attempts[i].Calls[j]
			cut(&c.Body)
			cut(&c.ReplyBody)
			if c.Cut != "" {
				c.Cut = broken // an error of the network names addresses, which no client may see
			}
		}
	}
	return &x
}

// warn logs a fault, once in a while if it lasts.
func (k *Keeper) warn(text string, err error) {
	if time.Since(k.warned) >= warnEvery {
		k.warned = time.Now()
		k.options.Logger.Warn(text, "dropped", k.sink.dropped.Load(), "cause", err)
	}
}
