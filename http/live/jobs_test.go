package live

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/work"
)

// Whatever a client says, it is answered by messages that are JSON, or by nothing.
func FuzzAnyMessageIsAnswered(f *testing.F) {
	for _, text := range []string{`{"type":"subscribe","ids":"all","after":1}`, `{"type":"subscribe","ids":["a","b"]}`, `{"type":"unsubscribe"}`,
		`{"type":"subscribe","ids":[null]}`, `{"type":1e999}`, `[]`, `"subscribe"`, "\xff\x00",
		`{"type":"subscribe","ids":["` + "\u2028" + `"],"after":1e300}`} {
		f.Add([]byte(text))
	}
	s, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, message []byte) {
		j := &jobs{state: s, owner: "user:ann"}
		j.Receive(message)
		for range 2 {
			if _, err := j.Next(func(answer []byte) error {
				if kind := gjson.GetBytes(answer, "type").Str; !gjson.ValidBytes(answer) || kind != "error" && kind != "ready" {
					t.Errorf("%q is answered %q", message, answer)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
	})
}

// What a change of one of a thousand jobs costs a watcher of all.
func BenchmarkAChangeIsTold(b *testing.B) {
	s, err := schema.Open(journal.NewMemory(), time.Now)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	put := func(v work.Video) {
		if _, err := state.Do(context.Background(), s,
			func(tx *state.Tx) (work.Video, error) { return work.PutVideo(tx, v) }); err != nil {
			b.Fatal(err)
		}
	}
	v := work.Video{
		Owner:   "user:ann",
		Model:   "video-2",
		Prompt:  "a cat",
		Phase:   work.VideoQueued,
		Created: time.Now(),
	}
	for range 1000 {
		if v.ID, err = state.NewID("video_", time.Now(), rand.Reader); err != nil {
			b.Fatal(err)
		}
		put(v)
	}
	j := &jobs{state: s, owner: v.Owner, feed: newFeed(s, v.Owner, nil, work.LastVideoChange(s.View(), v.Owner))}
	sent := 0
	next := func() {
		if _, err := j.Next(func([]byte) error { sent++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	next() // that it is ready
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		v.Seconds++
		put(v)
		b.StartTimer()
		next()
	}
	if sent != b.N+1 {
		b.Errorf("%d messages of %d changes", sent, b.N)
	}
}
