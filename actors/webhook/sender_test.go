package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/kit"
	"stagedoor/actors/webhook"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
	"stagedoor/test/harness"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

const secret = "whsec_c3RhZ2Vkb29yIHNpZ25zIHdoYXQgaXQgc2VuZHM="

// A stage is a sender over a store that outlives it.
type stage struct {
	t     *testing.T
	store journal.Store
	state *state.State
	hooks *webhook.Client
	logs  *harness.Buffer
	clock atomic.Int64 // how much later it is
	// options are of the state.
	options []work.Option

	stop func()
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, store: journal.NewMemory(), logs: &harness.Buffer{}}
	t.Cleanup(func() { s.stop() })
	return s
}

// start starts a process, so to speak.
func (s *stage) start(endpoints ...webhook.Endpoint) {
	s.t.Helper()
	var err error
	now := func() time.Time { return time.Now().Add(time.Duration(s.clock.Load())) }
	store := s.store
	if _, shared := store.(journal.Shared); !shared {
		store = statetest.DecideTwice(store)
	}
	if s.state, err = schema.Open(store, now, s.options...); err != nil {
		s.t.Fatal(err)
	}
	system := kit.NewSystem(kit.Options{Logger: slog.New(slog.NewTextHandler(s.logs, nil))})
	if s.hooks, err = webhook.Start(system, s.state); err != nil {
		s.t.Fatal(err)
	}
	s.configure(endpoints...)
	s.stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := system.Stop(ctx); err != nil {
			s.t.Error(err)
		}
		if err := s.state.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *stage) configure(endpoints ...webhook.Endpoint) {
	s.hooks.Configure(endpoints)
}

// hooksOnly stores events for endpoints that are not configured yet.
func (s *stage) hooksOnly(endpoints ...webhook.Endpoint) {
	var all []work.Webhook
	for _, e := range endpoints {
		all = append(all, e.Webhook)
	}
	work.SetWebhooks(s.state, all)
}

// finish ends a job of ann's.
func (s *stage) finish(phase work.VideoPhase) work.Video {
	s.t.Helper()
	return s.finishFor("ann", phase)
}

// finishFor ends a job of a user.
func (s *stage) finishFor(user string, phase work.VideoPhase) work.Video {
	s.t.Helper()
	random := rand.NewChaCha8([32]byte{byte(rand.Uint32()), byte(rand.Uint32()), byte(rand.Uint32())})
	id, err := state.NewID("video_", time.Now(), random)
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := state.Do(s.t.Context(), s.state, func(tx *state.Tx) (work.Video, error) {
		return work.PutVideo(tx, work.Video{ID: id, Owner: state.OwnerOf("", user), Model: "video-2", Prompt: "a cat",
			Phase: phase, Created: tx.Now()})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// waiting counts the deliveries that are kept for an endpoint, and their tries.
func (s *stage) waiting(e webhook.Endpoint) (n, tries int) {
	work.Deliveries(s.state.View(), e.ID, func(d *work.Delivery) bool { n++; tries += d.Tries; return true })
	return n, tries
}

// await waits until what is true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// A receiver keeps its requests and replies as the test sets it.
type receiver struct {
	*httptest.Server
	status atomic.Int32

	mu  sync.Mutex
	got []received
}

type received struct {
	header http.Header
	body   string
}

func newReceiver(t *testing.T, status int) *receiver {
	r := &receiver{}
	r.status.Store(int32(status))
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.got = append(r.got, received{req.Header, string(text)})
		r.mu.Unlock()
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(int(r.status.Load()))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.got...)
}

func (r *receiver) endpoint(t *testing.T, id string) webhook.Endpoint {
	t.Helper()
	key, err := webhook.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	return webhook.Endpoint{Webhook: work.Webhook{ID: id}, URL: r.URL + "/hook?token=hidden", Key: key,
		Allow: loopback}
}

// verify checks a signature as a receiver does.
func verify(t *testing.T, r received) {
	t.Helper()
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", r.header.Get("webhook-id"), r.header.Get("webhook-timestamp"), r.body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.header.Get("webhook-signature") != want {
		t.Errorf("signature %s, want %s", r.header.Get("webhook-signature"), want)
	}
}

func TestTheEndOfAVideoIsSentSignedAndOnce(t *testing.T) {
	for phase, event := range map[work.VideoPhase]string{
		work.VideoCompleted: "video.completed", work.VideoFailed: "video.failed",
	} {
		t.Run(event, func(t *testing.T) {
			s, r := newStage(t), newReceiver(t, 204)
			e := r.endpoint(t, "wh_1")
			s.start(e)
			v := s.finish(phase)
			await(t, "the event arrives", func() bool { n, _ := s.waiting(e); return n == 0 && len(r.all()) > 0 })
			got := r.all()
			if len(got) != 1 {
				t.Fatalf("%d times", len(got))
			}
			verify(t, got[0])
			text := gjson.Parse(got[0].body)
			if text.Get("type").Str != event || text.Get("data.id").Str != v.ID || text.Get("object").Str != "event" ||
				text.Get("id").Str != got[0].header.Get("webhook-id") || text.Get("created_at").Int() == 0 {
				t.Errorf("%s", got[0].body)
			}
		})
	}
}

func TestAnEventThatGoesByMailIsRetried(t *testing.T) {
	s, sent := newStage(t), make(chan string, 2)
	var fails atomic.Bool
	fails.Store(true)
	e := webhook.Endpoint{Webhook: work.Webhook{ID: "wha_1"}, Mail: "ops@example.com",
		Send: func(_ context.Context, d *work.Delivery) error {
			sent <- d.Event
			if fails.Load() {
				return errors.New("the mail server did not take it")
			}
			return nil
		}}
	s.start(e)
	s.finish(work.VideoCompleted)
	await(t, "a try fails", func() bool { _, tries := s.waiting(e); return tries == 1 })
	fails.Store(false)
	s.clock.Store(int64(time.Hour))
	s.configure(e) // looks again, now that it is later
	await(t, "the retry arrives", func() bool { n, _ := s.waiting(e); return n == 0 })
	if first, second := <-sent, <-sent; first != second {
		t.Errorf("%s and %s were sent", first, second)
	}
}

func TestAFailureIsTriedAgainWithTheSameID(t *testing.T) {
	for _, status := range []int{500, 302, 404} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			s, r := newStage(t), newReceiver(t, status)
			e := r.endpoint(t, "wh_1")
			s.start(e)
			s.finish(work.VideoCompleted)
			await(t, "a try fails", func() bool { _, tries := s.waiting(e); return tries == 1 })
			if n := len(r.all()); n != 1 {
				t.Errorf("asked %d times before the retry was due", n)
			}
			r.status.Store(200)
			s.clock.Store(int64(time.Hour))
			s.configure(e) // looks again, now that it is later
			await(t, "the retry arrives", func() bool { n, _ := s.waiting(e); return n == 0 })
			got := r.all()
			id := func(i int) string { return got[i].header.Get("webhook-id") }
			if len(got) != 2 || id(0) != id(1) || got[0].body != got[1].body {
				t.Errorf("%+v", got)
			}
			verify(t, got[1])
		})
	}
}

func TestAnEndpointThatAnswers410GetsNoMoreEvents(t *testing.T) {
	s, r := newStage(t), newReceiver(t, http.StatusGone)
	e := r.endpoint(t, "wh_1")
	s.start(e)
	s.finish(work.VideoCompleted)
	await(t, "it is given up", func() bool { n, _ := s.waiting(e); return n == 0 && len(r.all()) == 1 })
}

// What was not delivered when a process ended is delivered by the next.
func TestNothingIsLostWithTheProcess(t *testing.T) {
	s, r := newStage(t), newReceiver(t, 503)
	e := r.endpoint(t, "wh_1")
	s.start(e)
	for range 3 {
		s.finish(work.VideoCompleted)
	}
	await(t, "all tries fail", func() bool { _, tries := s.waiting(e); return tries == 3 })
	s.stop()
	r.status.Store(200)
	s.clock.Store(int64(time.Hour))
	before := len(r.all())
	s.start(e)
	await(t, "all arrive", func() bool { n, _ := s.waiting(e); return n == 0 })
	if n := len(r.all()) - before; n != 3 {
		t.Errorf("%d arrived, want 3", n)
	}
}

// An endpoint that answers nothing has its own few places to wait in.
func TestASilentEndpointDelaysNoOther(t *testing.T) {
	s, quick := newStage(t), newReceiver(t, 200)
	released := make(chan struct{})
	var asked atomic.Int32
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		<-released
	}))
	defer silent.Close()
	defer close(released)
	dead, good := quick.endpoint(t, "wh_dead"), quick.endpoint(t, "wh_good")
	dead.URL = silent.URL
	s.start(dead, good)
	for range 30 {
		s.finish(work.VideoCompleted)
	}
	await(t, "the other endpoint gets all events", func() bool { n, _ := s.waiting(good); return n == 0 })
	await(t, "the silent one is asked", func() bool { return asked.Load() == 4 })
	if n, _ := s.waiting(dead); n != 30 {
		t.Errorf("%d wait for the silent one", n)
	}
}

// TestOneOwnersDeliveriesDoNotDelayThoseOfAnother: an endpoint that does not answer the events of
// one owner gets those of another one at once, however many of the first one wait. It is the same
// after a restart, when the deliveries of both were due for long.
func TestOneOwnersDeliveriesDoNotDelayThoseOfAnother(t *testing.T) {
	s := newStage(t)
	var held sync.Map // ids of the jobs whose events are not answered
	var asked, good atomic.Int32
	ended := make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if _, ok := held.Load(gjson.GetBytes(text, "data.id").Str); ok {
			asked.Add(1)
			select {
			case <-ended:
			case <-r.Context().Done():
			}
			return
		}
		good.Add(1)
	}))
	defer endpoint.Close()
	defer close(ended)
	e := newReceiver(t, 200).endpoint(t, "wh_1")
	e.URL = endpoint.URL
	s.start()
	s.hooksOnly(e)
	for range 30 {
		held.Store(s.finishFor("slow", work.VideoCompleted).ID, true)
	}
	s.configure(e)
	await(t, "the slow owner has its slots", func() bool { return asked.Load() == 4 })
	for range 10 {
		s.finishFor("quick", work.VideoCompleted)
	}
	await(t, "the events of the other owner arrive", func() bool { return good.Load() == 10 })
	if n := asked.Load(); n != 4 {
		t.Errorf("%d events of the slow owner were sent at once, want half of the 8 slots", n)
	}
	await(t, "only those of the slow owner wait", func() bool { n, _ := s.waiting(e); return n == 30 })
	s.configure() // so that the next event is not sent before the restart
	s.hooksOnly(e)
	s.finishFor("quick", work.VideoCompleted)
	s.stop()
	s.start(e)
	await(t, "the event of the other owner arrives after the restart", func() bool { return good.Load() == 11 })
	s.finishFor("late", work.VideoCompleted)
	await(t, "the event of a third owner arrives", func() bool { return good.Load() == 12 })
	await(t, "only those of the slow owner wait", func() bool { n, _ := s.waiting(e); return n == 30 })
}

// TestADeliveryThatIsGivenUpForANewOneIsLogged: the log names each delivery that was given up
// because too many of its owner wait, and the metrics count it.
func TestADeliveryThatIsGivenUpForANewOneIsLogged(t *testing.T) {
	s, r := newStage(t), newReceiver(t, 500)
	s.options = []work.Option{work.MaxDeliveries(4)}
	e := r.endpoint(t, "wh_1")
	s.start(e)
	s.finish(work.VideoCompleted)
	await(t, "its try fails", func() bool { _, tries := s.waiting(e); return tries == 1 })
	first := "evt_"
	work.Deliveries(s.state.View(), e.ID, func(d *work.Delivery) bool { first = d.Event; return false })
	for range 2 {
		s.finish(work.VideoCompleted)
	}
	if n, _ := s.waiting(e); n != 2 || work.WaitingDeliveries(s.state).Stats().Shares != 1 {
		t.Errorf("%d deliveries wait, want half of the places", n)
	}
	line := `msg="webhook given up" webhook=wh_1 event=` + first
	await(t, "the log names the delivery", func() bool { return strings.Contains(s.logs.String(), line) })
	if n := strings.Count(s.logs.String(), "webhook given up"); n != 1 {
		t.Errorf("%d deliveries were given up, want one:\n%s", n, s.logs.String())
	}
}

// A disk that is full when tries end must not cost their endpoint its places: once
// there is room, all that was left is delivered.
func TestAFullDiskDoesNotSilenceAnEndpoint(t *testing.T) {
	s, r := newStage(t), newReceiver(t, 200)
	store := statetest.NewFaulty()
	s.store = store
	e := r.endpoint(t, "wh_1")
	s.start()
	s.hooksOnly(e)
	for range 6 { // more than an endpoint has places
		s.finish(work.VideoCompleted)
	}
	var refused atomic.Int32
	store.Before(func([]journal.Batch) error {
		refused.Add(1)
		return fmt.Errorf("%w: too little disk space", journal.ErrReadOnly)
	})
	s.configure(e)
	await(t, "tries end that cannot be kept", func() bool { return refused.Load() >= 4 })
	store.Before(nil)
	await(t, "the rest is delivered", func() bool { n, _ := s.waiting(e); return n == 0 })
	if n := len(r.all()); n != 6 {
		t.Errorf("%d requests, want 6: a result that was not stored must not be sent again", n)
	}
}

// A delivery that is gone when its try ends leaves its place to the next.
func TestARemovedDeliveryFreesItsSlot(t *testing.T) {
	s := newStage(t)
	var asked atomic.Int32
	released := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1); asked.Load() <= 4 {
			<-released
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer slow.Close()
	e := newReceiver(t, 200).endpoint(t, "wh_1")
	e.URL = slow.URL
	s.start(e)
	for range 5 {
		s.finish(work.VideoCompleted)
	}
	await(t, "all places are taken", func() bool { return asked.Load() == 4 })
	var tried []string
	work.Deliveries(s.state.View(), e.ID,
		func(d *work.Delivery) bool { tried = append(tried, d.ID); return len(tried) < 4 })
	for _, id := range tried {
		if err := work.RemoveDelivery(t.Context(), s.state, id); err != nil {
			t.Fatal(err)
		}
	}
	close(released)
	await(t, "the fifth event is delivered", func() bool { n, _ := s.waiting(e); return n == 0 })
}

func TestPrivateAddressesAreNotCalledHoweverTheyAreNamed(t *testing.T) {
	s, r := newStage(t), newReceiver(t, 200)
	_, port, _ := strings.Cut(strings.TrimPrefix(r.URL, "http://"), ":")
	var all []webhook.Endpoint
	for i, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f.1"} {
		e := r.endpoint(t, fmt.Sprintf("wh_%d", i))
		e.URL, e.Allow = "http://"+host+":"+port+"/secret-path", nil
		all = append(all, e)
	}
	s.start(all...)
	s.finish(work.VideoCompleted)
	for _, e := range all {
		await(t, e.URL+" fails", func() bool { _, tries := s.waiting(e); return tries == 1 })
	}
	if n := len(r.all()); n != 0 {
		t.Errorf("called %d times", n)
	}
	s.stop()
	s.stop = func() {}
	log := s.logs.String()
	if strings.Contains(log, "secret-path") || strings.Contains(log, port) ||
		!strings.Contains(log, "not a public one") {
		t.Errorf("the log tells too much or too little:\n%s", log)
	}
}
