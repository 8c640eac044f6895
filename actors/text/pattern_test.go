package text

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/providers/dialogue"
)

// heldFor returns a text part of a reply that ends before one of the sequences.
func heldFor(stops []string) *heldText {
	e := enforcer{Enforced: dialogue.Enforced{Stop: stops}}
	return e.holdText()
}

// TestStopSequencesAreFoundInPieces compares what is let through with a search of the whole text. At any time only an
// end of the text that a sequence may begin with is held back.
func TestStopSequencesAreFoundInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stops := rapid.SliceOfN(rapid.StringMatching(`[ab]{1,6}`), 1, 4).Draw(t, "stops")
		h := heldFor(stops)
		all, sent, found := "", "", ""
		for found == "" && len(all) < 60 {
			piece := rapid.StringMatching(`[abc]{0,7}`).Draw(t, "piece")
			before := all
			all += piece
			found = h.add(&dialogue.Event{Kind: dialogue.EventDelta, Text: piece},
				func(ev *dialogue.Event) { sent += ev.Text })
			at, want, held := -1, "", 0
			for _, s := range stops {
				if i := strings.Index(all, s); i >= 0 && (at < 0 || i < at || i == at && len(s) < len(want)) {
					at, want = i, s
				}
				for n := range s {
					if strings.HasSuffix(all, s[:n]) {
						held = max(held, n)
					}
				}
			}
			if found != want {
				t.Fatalf("%q after %q: found %q, want %q", piece, before, found, want)
			}
			if text := all[:len(all)-held]; want == "" && sent != text || want != "" && sent != all[:at] {
				t.Fatalf("%q after %q: %q was sent, %q is held back", piece, before, sent, all[len(sent):])
			}
		}
	})
}

// TestStopSequencesCostWhatTheTextIsWorth: neither a text nor a sequence that repeats itself is read again and again.
func TestStopSequencesCostWhatTheTextIsWorth(t *testing.T) {
	stops := make([]string, 64)
	for i := range stops {
		stops[i] = strings.Repeat("a", 4000) + string(rune('b'+i%20))
	}
	text := strings.Repeat(strings.Repeat("a", 3990)+"z", 50)
	for name, size := range map[string]int{"at once": len(text), "in pieces": 4} {
		h, sent := heldFor(stops), 0
		began := time.Now()
		for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
			h.add(&dialogue.Event{Kind: dialogue.EventDelta, Text: rest[:min(size, len(rest))]},
				func(ev *dialogue.Event) { sent += len(ev.Text) })
		}
		if took := time.Since(began); sent != len(text) || took > 20*time.Second {
			t.Errorf("%s: %d bytes of %d were sent after %v", name, sent, len(text), took)
		}
	}
}
