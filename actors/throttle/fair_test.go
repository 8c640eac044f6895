package throttle

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// steady is a provider that takes a second for each request, in fake time.
type steady struct {
	*world
	good    map[string]int // by key
	refused map[string]int
	asked   map[string]int
	longest map[string]time.Duration
}

func newSteady(config Config) *steady {
	return &steady{
		world:   newWorld(config),
		good:    map[string]int{},
		refused: map[string]int{},
		asked:   map[string]int{},
		longest: map[string]time.Duration{},
	}
}

// submit asks, without reading the verdict.
func (s *steady) submit(key string, class int, wait time.Duration) {
	s.asked[key]++
	s.ask(key, class, 0, wait, false)
	s.core.dispatch(s.now)
	s.read()
}

func (s *steady) read() {
	still := s.waiting[:0]
	for _, k := range s.waiting {
		select {
		case refused := <-k.verdict:
			if refused != nil {
				s.refused[k.owner]++
				continue
			}
			s.good[k.owner]++
			s.longest[k.owner] = max(s.longest[k.owner], s.now.Sub(k.asked))
			s.holding = append(s.holding, k)
		default:
			still = append(still, k)
		}
	}
	s.waiting = still
}

// second ends the requests in flight one second after they were granted.
func (s *steady) second() {
	s.now = s.now.Add(time.Second)
	done := s.holding
	s.holding = nil
	for _, k := range done {
		s.core.release(s.now, k, &Outcome{})
	}
	s.core.dispatch(s.now)
	s.read()
}

// TestAFloodingKeyNeverDelaysKeysBelowTheirShare lets one key flood the queue, in any
// class, for many times the longest ageing interval. The other keys ask for less than
// their share, so all of theirs must be served, and nothing of the flood may pass them.
func TestAFloodingKeyNeverDelaysKeysBelowTheirShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(1, 4).Draw(t, "places")
		keys := rapid.IntRange(1, 10).Draw(t, "keys")
		floods := rapid.SliceOfN(rapid.IntRange(Interactive, Background), 1, 3).Draw(t, "flood")
		class := rapid.IntRange(Interactive, Normal).Draw(t, "class")
		patience := rapid.SampledFrom([]time.Duration{0, 200 * time.Second}).Draw(t, "patience")
		// A round gives each key a quantum, so this is below an equal share of the places.
		every := (keys+1)/places + 2
		s := newSteady(Config{MaxInFlight: places, QueuePerOwner: 32, QueueTotal: 64})
		const seconds = 900
		for second := range seconds {
			for i := range 2 * places {
				s.submit("flood", floods[(second+i)%len(floods)], patience)
			}
			for key := range keys {
				if (second+key)%every == 0 {
					s.submit(fmt.Sprint("key", key), class, patience)
				}
			}
			s.second()
		}
		for len(s.waiting) > 0 {
			s.second()
		}
		total := 0
		for key := range keys {
			name := fmt.Sprint("key", key)
			if s.refused[name] > 0 || s.good[name] != s.asked[name] {
				t.Fatalf("%s: %d asked, %d served, %d refused; the flood: %d served", name, s.asked[name],
					s.good[name], s.refused[name], s.good["flood"])
			}
			// Each key has a turn of at most a quantum before this one's.
			if most := time.Duration(1+(keys+1)*quantum[Normal]) * time.Second; s.longest[name] > most {
				t.Fatalf("%s waited %v", name, s.longest[name])
			}
			total += s.good[name]
		}
		if got, want := s.good["flood"], seconds*places-total; got < want*9/10 {
			t.Fatalf("the flood got %d of the %d places that the others left", got, want)
		}
	})
}

// TestNoClassStarves floods the other classes, with keys that always wait and with new
// keys without end, and looks whether a few requests of the third class are served.
func TestNoClassStarves(t *testing.T) {
	for class := range classCount {
		for name, flood := range map[string]func(s *steady, second, class int){
			"keys that always wait": func(s *steady, second, class int) {
				for i := range 2 {
					s.submit(fmt.Sprint("flood", class, i), class, 0)
				}
			},
			"new keys without end": func(s *steady, second, class int) {
				if second%2 == class%2 { // together as many as can be served
					s.submit(fmt.Sprint("new", class, second), class, 0)
				}
			},
		} {
			s := newSteady(Config{MaxInFlight: 1, QueuePerOwner: 32, QueueTotal: 256})
			for second := range 3000 {
				for other := range classCount {
					if other != class {
						flood(s, second, other)
					}
				}
				if second%500 == 0 {
					s.submit("few", class, 0)
				}
				s.second()
			}
			if s.good["few"] != 6 || s.longest["few"] > 100*time.Second {
				t.Errorf("class %d beside %s: %d of 6 served, %d refused, after %v at most", class, name,
					s.good["few"], s.refused["few"], s.longest["few"])
			}
		}
	}
}

// TestAgeingNeverMovesARequestAheadOfAnotherKey is the measured case: a queue full of one
// key's requests that have all aged, and a fresh request of another key.
func TestAgeingNeverMovesARequestAheadOfAnotherKey(t *testing.T) {
	s := newSteady(Config{MaxInFlight: 1, QueuePerOwner: 64})
	for range 64 {
		s.submit("flood", Normal, 10*time.Minute)
	}
	s.now = s.now.Add(6 * time.Minute)
	s.core.dispatch(s.now)
	s.submit("fresh", Normal, 10*time.Minute)
	for range quantum[Normal] + 2 {
		s.second()
	}
	if s.good["fresh"] != 1 {
		t.Errorf("the fresh request still waits behind requests that have aged: %v", s.good)
	}
}
