package live

import (
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Whatever a client says, it is answered by messages that are JSON, or by nothing.
func FuzzAnyMessageIsAnswered(f *testing.F) {
	for _, text := range []string{`{"type":"subscribe","ids":"all","after":1}`, `{"type":"subscribe","ids":["a","b"]}`, `{"type":"unsubscribe"}`,
		`{"type":"subscribe","ids":[null]}`, `{"type":1e999}`, `[]`, `"subscribe"`, "\xff\x00", `{"type":"subscribe","ids":["` + "\u2028" + `"],"after":1e300}`} {
		f.Add([]byte(text))
	}
	s, err := state.Open(journal.NewMemory(), time.Now)
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
		j.Hear(message)
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
