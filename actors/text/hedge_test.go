package text_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/recording"
	"stagedoor/actors/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/tokens"
	"stagedoor/state/money"
	"stagedoor/state/recordings"
)

// hedged lets a further target take part in the requests of the stage after a time; 0 is p95.
func (s *stage) hedged(after time.Duration) {
	s.hedge = &catalog.Hedge{Model: "m", After: after, Most: 1}
}

// slow plays a script after a while. cut is called when the call is given up before.
func slow(d time.Duration, then script, cut func()) script {
	return func(c *call) (*http.Response, error) {
		select {
		case <-time.After(d):
			return then(c)
		case <-c.Context().Done():
			cut()
			return nil, c.Context().Err()
		}
	}
}

// accepted replies with headers at once and with a body that stalls.
func accepted(cut func()) script {
	return func(c *call) (*http.Response, error) {
		context.AfterFunc(c.Context(), cut)
		return stream(chatRole, stall)(c)
	}
}

// forms are a request for a stream and one for a whole reply, with good replies.
var forms = []struct {
	name, ask string
	reply     script
}{{"stream", chatAskStream, goodChat()}, {"whole", chatAsk, document(200, chatWhole)}}

func TestASlowTargetIsOvertakenByTheNext(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				var cut time.Duration
				start := time.Now()
				s.upstream("a", dialoguetest.Chat, slow(time.Minute, form.reply, func() { cut = time.Since(start) }))
				s.upstream("b", dialoguetest.Chat, slow(time.Second, form.reply, func() {}))
				s.hedged(2 * time.Second)
				got := s.ask(s.request(dialoguetest.Chat, form.ask))
				if got.Err != nil || !strings.Contains(got.text, "Hello") || got.meta.Provider != "b" ||
					got.Attempts != 2 {
					t.Errorf("got %v from %s after %d attempts: %s", got.Err, got.meta.Provider, got.Attempts, got.text)
				}
				if got.took != 3*time.Second || cut != 3*time.Second {
					t.Errorf("took %s, the loser was cut after %s", got.took, cut)
				}
			})
		})
	}
}

func TestATargetThatIsFasterThanItsHedgeWins(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				var cut time.Duration
				start := time.Now()
				s.upstream("a", dialoguetest.Chat, slow(3*time.Second, form.reply, func() {}))
				s.upstream("b", dialoguetest.Chat, slow(time.Minute, form.reply, func() { cut = time.Since(start) }))
				s.hedged(2 * time.Second)
				got := s.ask(s.request(dialoguetest.Chat, form.ask))
				if got.Err != nil || !strings.Contains(got.text, "Hello") || got.meta.Provider != "a" {
					t.Errorf("got %v from %s: %s", got.Err, got.meta.Provider, got.text)
				}
				if got.took != 3*time.Second || cut != 3*time.Second {
					t.Errorf("took %s, the loser was cut after %s", got.took, cut)
				}
			})
		})
	}
}

// A target that sends its first piece in time is alone, and so is one of a model without a hedge, one of a background
// response, and one whose only followers are for certain failures.
func TestARequestIsNotHedgedWithoutNeed(t *testing.T) {
	for name, test := range map[string]struct {
		delay  time.Duration
		change func(s *stage)
		ask    func(q *text.Request)
	}{
		"in time":    {delay: time.Second},
		"no hedge":   {delay: time.Minute, change: func(s *stage) { s.hedge = nil }},
		"background": {delay: time.Minute, ask: func(q *text.Request) { q.Head.Background = true }},
		"summary":    {delay: time.Minute, ask: func(q *text.Request) { q.Head.Compaction = dialogue.CompactionItem }},
		"conditions": {delay: time.Minute, change: func(s *stage) { s.fallback("timeout") }},
		"few times":  {delay: time.Minute, change: func(s *stage) { s.hedged(0) }},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", dialoguetest.Chat, slow(test.delay, goodChat(), func() {}))
				s.upstream("b", dialoguetest.Chat, goodChat())
				s.hedged(2 * time.Second)
				if test.change != nil {
					test.change(s)
				}
				q := s.request(dialoguetest.Chat, chatAskStream)
				if test.ask != nil {
					test.ask(q)
				}
				if got := s.ask(q); got.Err != nil || s.fakes["b"].count() != 0 || got.Attempts != 1 {
					t.Errorf("got %v, %d calls of the second target", got.Err, s.fakes["b"].count())
				}
			})
		})
	}
}

// A failure of one target does not end the request while another one is at work. If both fail, the request goes on
// behind them.
func TestTheFailureOfOneTargetLeavesTheRequestToTheOther(t *testing.T) {
	broken := document(400, chatRefuse)
	for name, test := range map[string]struct {
		a, b script
		from string
	}{
		"the first one fails": {slow(3*time.Second, broken, func() {}),
			slow(5*time.Second, goodChat(), func() {}), "b"},
		"the second one fails": {slow(5*time.Second, goodChat(), func() {}), broken, "a"},
		"both fail": {slow(3*time.Second, document(401, chatRefuse), func() {}),
			slow(5*time.Second, document(500, chatRefuse), func() {}), "c"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", dialoguetest.Chat, test.a)
				s.upstream("b", dialoguetest.Chat, test.b)
				s.upstream("c", dialoguetest.Chat, goodChat())
				s.hedged(2 * time.Second)
				got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
				if got.Err != nil || got.meta.Provider != test.from || !strings.Contains(got.text, "Hello") {
					t.Errorf("got %v from %s: %s", got.Err, got.meta.Provider, got.text)
				}
				if a, b := s.fakes["a"].count(), s.fakes["b"].count(); a != 1 || b != 1 {
					t.Errorf("%d and %d calls", a, b)
				}
			})
		})
	}
}

// The failure of a stream that a hedge has begun is the client's, as that of any other stream.
func TestAStreamOfAHedgeThatBreaksEndsWithAnError(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, slow(time.Minute, goodChat(), func() {}))
		s.upstream("b", dialoguetest.Chat, stream(chatRole+chatText("Hel"), time.Second, reset))
		s.hedged(2 * time.Second)
		got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
		if got.Err == nil || !got.Committed || !strings.Contains(got.text, "Hel") ||
			strings.Count(got.text, `"error":`) != 1 || strings.Contains(got.text, "[DONE]") {
			t.Errorf("got %v: %s", got.Err, got.text)
		}
	})
}

// Both targets end with the request: when its client leaves, and in a drain.
func TestACancelledRequestEndsAllItsTargets(t *testing.T) {
	for name, end := range map[string]func(s *stage, r *text.Reply){
		"client left": func(_ *stage, r *text.Reply) { r.Abandon() },
		"drain": func(s *stage, _ *text.Reply) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			if n := s.engine.Drain(ctx, time.Minute); n != 1 {
				s.t.Errorf("%d requests were cancelled", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				cut := make(chan string, 2)
				s.upstream("a", dialoguetest.Chat, slow(time.Hour, goodChat(), func() { cut <- "a" }))
				s.upstream("b", dialoguetest.Chat, slow(time.Hour, goodChat(), func() { cut <- "b" }))
				s.hedged(2 * time.Second)
				r := s.service.Begin(context.Background(), s.request(dialoguetest.Chat, chatAskStream))
				kittest.Pass(3 * time.Second)
				end(s, r)
				if got := s.read(r); got.Err == nil || got.Committed {
					t.Errorf("got %v", got.Err)
				}
				if ended := []string{<-cut, <-cut}; !slices.Contains(ended, "a") || !slices.Contains(ended, "b") {
					t.Errorf("ended: %v", ended)
				}
			})
		})
	}
}

// receiptsOf returns the receipts of a request, that of the winner last.
func (a account) receiptsOf(t *testing.T, id string) []money.Receipt {
	t.Helper()
	kittest.Pass(time.Second)
	all, err := money.Receipts(context.Background(), a.state, "7", id)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(x, y money.Receipt) int { return strings.Compare(x.Reason, y.Reason) * -1 })
	b, err := a.Balance(context.Background(), "7")
	if err != nil || b.Held != 0 {
		t.Errorf("%d is held: %v", b.Held, err)
	}
	return all
}

// Each provider's bill depends on what it did: the winner's on its usage, the loser's prompt is paid from its 2xx
// headers on, and a loser that did not reply, or that failed, is not paid.
func TestABillOfAHedgedRequestIsWhatEachProviderDid(t *testing.T) {
	prompt := int64((len(chatAskStream) + 3) / 4)
	for name, test := range map[string]struct {
		loser script
		ask   string
		reply script
		pays  int64
	}{
		"the loser sent headers": {accepted(func() {}), chatAskStream, goodChat(), prompt},
		"the loser sent nothing": {slow(time.Hour, goodChat(), func() {}), chatAskStream, goodChat(), 0},
		"the loser failed": {slow(3*time.Second, document(500, chatRefuse), func() {}), chatAskStream,
			goodChat(), 0},
		"whole, it sent nothing":   {slow(time.Hour, goodChat(), func() {}), chatAsk, document(200, chatWhole), 0},
		"the loser broke its body": {stream(3*time.Second, reset), chatAskStream, goodChat(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.upstream("a", dialoguetest.Chat, test.loser)
				s.upstream("b", dialoguetest.Chat, slow(2*time.Second, test.reply, func() {}))
				s.providers["a"].Spec.Retries = 0
				a := s.priced(1_000_000)
				defer a.state.Close()
				s.hedged(2 * time.Second)
				got := s.ask(a.charge(s.request(dialoguetest.Chat, test.ask)))
				if got.Err != nil || got.meta.Provider != "b" {
					t.Fatalf("got %v from %s", got.Err, got.meta.Provider)
				}
				all := a.receiptsOf(t, "r1")
				if len(all) != 2 || all[0].Reason != money.ReasonOvertaken || all[0].Provider != "a" ||
					all[1].Reason != "finished" || all[1].Provider != "b" {
					t.Fatalf("got %+v", all)
				}
				if all[0].Charged != test.pays || all[1].Charged != 3+4*10 || all[0].Usage.Output != 0 {
					t.Errorf("the loser costs %d (%+v), want %d, the winner %d", all[0].Charged, all[0].Usage,
						test.pays, all[1].Charged)
				}
				usage, err := money.QueryUsage(context.Background(), a.state, money.UsageQuery{Account: "7",
					Per: money.PerAccount, From: time.Now(), To: time.Now()})
				if err != nil || len(usage) != 1 || usage[0].Requests != 1 || usage[0].Amount != 43+test.pays {
					t.Errorf("the usage is %+v: %v", usage, err)
				}
			})
		})
	}
}

// A request whose account cannot pay for a second hold is served by its first target.
func TestAHedgeThatTheAccountCannotHoldIsLeftOut(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, slow(3*time.Second, document(200, chatWhole), func() {}))
		s.upstream("b", dialoguetest.Chat, document(200, chatWhole))
		s.most = 10
		a := s.priced(150)
		defer a.state.Close()
		s.hedged(2 * time.Second)
		got := s.ask(a.charge(s.request(dialoguetest.Chat, chatAsk)))
		if got.Err != nil || got.meta.Provider != "a" || s.fakes["b"].count() != 0 {
			t.Errorf("got %v from %s, %d calls of the second", got.Err, got.meta.Provider, s.fakes["b"].count())
		}
		if all := a.receiptsOf(t, "r1"); len(all) != 1 {
			t.Errorf("%d receipts", len(all))
		}
	})
}

// Only one reply is stored: that of the target whose reply came first.
func TestAHedgedReplyIsCompletedOnce(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, slow(3*time.Second, document(200, chatWhole), func() {}))
		s.upstream("b", dialoguetest.Chat, slow(time.Second, document(200, chatWhole), func() {}))
		s.hedged(2 * time.Second) // both replies come at the same time
		var completed []string
		q := s.request(dialoguetest.Chat, chatAsk)
		q.Complete = func(_ context.Context, m text.Meta, _ []byte) ([]byte, *dialogue.Error) {
			completed = append(completed, m.Provider)
			return nil, nil
		}
		ended := 0
		q.Ended = func(*text.Outcome) { ended++ }
		got := s.ask(q)
		if got.Err != nil || len(completed) != 1 || completed[0] != got.meta.Provider || ended != 1 {
			t.Errorf("got %v from %s, completed %v, ended %d times", got.Err, got.meta.Provider, completed, ended)
		}
	})
}

// With p95, a target is hedged once 20 of its replies have begun, after the time that 95 of 100 of them needed. The
// times are forgotten after ten minutes.
func TestAHedgeAfterP95FollowsTheTimesOfTheTarget(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		delay := time.Duration(0)
		s.upstream("a", dialoguetest.Chat, func(c *call) (*http.Response, error) {
			return slow(delay, goodChat(), func() {})(c)
		})
		s.upstream("b", dialoguetest.Chat, goodChat())
		s.hedged(0)
		ask := func(d time.Duration) (provider string, took time.Duration) {
			delay = d
			got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
			return got.meta.Provider, got.took
		}
		for i := range 20 { // 100 ms to 2 s
			if from, _ := ask(time.Duration(i+1) * 100 * time.Millisecond); from != "a" {
				t.Fatalf("request %d is from %s", i, from)
			}
		}
		if from, took := ask(time.Minute); from != "b" || took != 1900*time.Millisecond {
			t.Errorf("from %s after %s, want b after the 19th of 20 times", from, took)
		}
		if from, _ := ask(1800 * time.Millisecond); from != "a" {
			t.Errorf("a reply in time is from %s", from)
		}
		kittest.Pass(11 * time.Minute)
		if from, _ := ask(time.Minute); from != "a" {
			t.Errorf("with times that are too old it is from %s", from)
		}
	})
}

// Hedges take places of the budget of retries, so that providers that are slow for everyone do not get the load twice.
func TestHedgesAreBoundedByTheRetryBudget(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, slow(10*time.Second, goodChat(), func() {}))
		s.upstream("b", dialoguetest.Chat, slow(30*time.Second, goodChat(), func() {}))
		s.hedged(2 * time.Second)
		var replies []*text.Reply
		for i := range 10 {
			q := s.request(dialoguetest.Chat, chatAskStream)
			q.ID = fmt.Sprint("r", i)
			replies = append(replies, s.service.Begin(context.Background(), q))
		}
		kittest.Pass(3 * time.Second)
		if n := s.fakes["b"].count(); n != 3 {
			t.Errorf("%d of ten requests were hedged, want 3", n)
		}
		for _, r := range replies {
			if got := s.read(r); got.Err != nil || got.meta.Provider != "a" {
				t.Errorf("got %v from %s", got.Err, got.meta.Provider)
			}
		}
	})
}

// A provider's limiter counts both: a hedge waits for its own permit, and the winner's first piece ends the wait.
func TestAHedgeNeedsAPermitOfItsOwn(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.upstream("a", dialoguetest.Chat, slow(5*time.Second, goodChat(), func() {}))
		s.add(catalog.Provider{Name: "b", Shape: dialoguetest.Chat, BaseURL: "http://b.test",
			Limits: catalog.Limits{Concurrency: 1}}, &fake{scripts: []script{slow(time.Minute, goodChat(), func() {})}})
		s.hedged(2 * time.Second)
		s.targets[0], s.targets[1] = s.targets[1], s.targets[0]
		busy := s.service.Begin(context.Background(), s.request(dialoguetest.Chat, chatAskStream))
		kittest.Pass(time.Second)
		s.targets[0], s.targets[1] = s.targets[1], s.targets[0]
		q := s.request(dialoguetest.Chat, chatAskStream)
		q.ID = "r2"
		if got := s.ask(q); got.Err != nil || got.meta.Provider != "a" || s.fakes["b"].count() != 1 {
			t.Errorf("got %v from %s, %d calls of b", got.Err, got.meta.Provider, s.fakes["b"].count())
		}
		s.read(busy)
	})
}

// Hedging after p95 costs a few calls and prompts more and cuts the slowest first pieces. The figures of the log are
// those of docs/routing.md. The times are drawn from a fixed sequence: most replies begin within a second, and one of
// twenty needs ten times as long.
func TestHedgingAfterP95CostsAFewCalls(t *testing.T) {
	const requests = 1000
	type figures struct {
		calls, tokens int64
		p50, p99      time.Duration
	}
	measure := func(hedge *catalog.Hedge) (f figures) {
		play(t, func(t *testing.T, s *stage) {
			var mu sync.Mutex
			times := rand.New(rand.NewPCG(1, 2))
			target := func(c *call) (*http.Response, error) {
				mu.Lock()
				d := 200*time.Millisecond + time.Duration(times.Int64N(int64(800*time.Millisecond)))
				if times.IntN(20) == 0 {
					d *= 10
				}
				mu.Unlock()
				return slow(d, goodChat(), func() {})(c)
			}
			s.upstream("a", dialoguetest.Chat, target)
			s.upstream("b", dialoguetest.Chat, target)
			s.hedge = hedge
			var took []time.Duration
			for range requests {
				got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
				if got.Err != nil {
					t.Fatal(got.Err)
				}
				took = append(took, got.took)
			}
			slices.Sort(took)
			f.p50, f.p99 = took[requests/2], took[requests*99/100]
			for _, fake := range s.fakes {
				for _, c := range fake.calls {
					f.calls, f.tokens = f.calls+1, f.tokens+tokens.Estimate(len(c.body))
				}
			}
		})
		return f
	}
	alone, hedged := measure(nil), measure(&catalog.Hedge{Model: "m", Most: 1})
	t.Logf("without a hedge: %d calls, %d prompt tokens, first piece p50 %s, p99 %s",
		alone.calls, alone.tokens, alone.p50.Round(time.Millisecond), alone.p99.Round(time.Millisecond))
	t.Logf("hedge after p95: %d calls, %d prompt tokens, first piece p50 %s, p99 %s",
		hedged.calls, hedged.tokens, hedged.p50.Round(time.Millisecond), hedged.p99.Round(time.Millisecond))
	if more := hedged.calls - alone.calls; alone.calls != requests || more < requests/50 || more > requests*8/100 {
		t.Errorf("%d calls more for %d requests", more, requests)
	}
	if hedged.p99 > alone.p99/2 {
		t.Errorf("the p99 is %s, without a hedge %s", hedged.p99, alone.p99)
	}
}

// TestARecordedKeyIsHedged as any other is, and what is kept is the exchange with the target that served the request.
func TestARecordedKeyIsHedged(t *testing.T) {
	for server, first := range map[string]time.Duration{"a": 3 * time.Second, "b": time.Minute} {
		play(t, func(t *testing.T, s *stage) {
			keeper := recording.StartKeeper(recording.KeeperOptions{Logger: slog.New(slog.DiscardHandler),
				Recorder: s.service.Recorder(), Dir: t.TempDir(), Now: time.Now,
				Limits:   recordings.Limits{Keep: time.Hour, Bytes: 1 << 20, Exchanges: 9},
				Recorded: func() map[string]time.Time { return map[string]time.Time{"key": time.Now().Add(time.Hour)} },
				Changed:  func() <-chan struct{} { return nil }, Stays: func(string) bool { return true },
				Room: func() int64 { return 1 << 30 }})
			defer keeper.Close()
			synctest.Wait()
			s.hedged(2 * time.Second)
			s.upstream("a", dialoguetest.Chat, slow(first, goodChat(), func() {}))
			s.upstream("b", dialoguetest.Chat, slow(10*time.Second, goodChat(), func() {}))
			began := time.Now()
			got := s.ask(s.request(dialoguetest.Chat, chatAskStream))
			synctest.Wait()
			x, err := keeper.Find("key", "r1", began, time.Now())
			if got.Err != nil || got.Attempts != 2 || got.meta.Provider != server || err != nil {
				t.Fatalf("got %v from %s after %d attempts; kept is %v", got.Err, got.meta.Provider, got.Attempts, err)
			}
			if len(x.Attempts) != 1 || x.Attempts[0].Target.Provider != server ||
				!bytes.Contains(x.Reply.Body, []byte("Hello")) || !bytes.Contains(x.Client.Body, []byte("messages")) {
				t.Errorf("kept is %+v", x)
			}
		})
	}
}
