package strict

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/replay"
	"stagedoor/providers/shapes/registry"
)

// TestRecordedLoopsReplayWithoutADifference records loops of every pair of shapes, whole and streamed, with signed
// reasoning, parallel calls and a failed attempt in every turn, and replays them. Then one byte of each recording that
// the translators make is changed, and the replay reports it. With -short each pair is either whole or streamed.
func TestRecordedLoopsReplayWithoutADifference(t *testing.T) {
	for i, k := range kinds {
		if i > 0 && k.shape == kinds[i-1].shape {
			continue // one vendor of each shape is enough here
		}
		for j, shape := range clientShapes {
			for _, stream := range []bool{false, true} {
				if testing.Short() && stream != ((i+j)%2 == 0) {
					continue
				}
				name := fmt.Sprintf("%s to %s, stream=%t", shape, k.name, stream)
				kittest.Run(t, func(t *testing.T, sys *kit.System) {
					g := newGateway(t, sys)
					a, b := newVendor(k, k.name[:1]+"a"), newVendor(k, k.name[:1]+"b")
					g.add(a)
					g.add(b)
					got := g.recorded(t, func() {
						c := &client{shape: shape, thinks: true, stream: stream}
						order := func(int) []*vendor { return []*vendor{b, a} }
						if _, err := g.play(c, []*vendor{a, b}, order); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					})
					replayOne(t, sys, name, got)
				})
			}
		}
	}
}

// recorded returns the recording of what f does.
func (g *gateway) recorded(t *testing.T, f func()) []byte {
	rec, err := g.service.Recorder().Start("key")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	done := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		done <- rec.Write(ctx, &out, func() error { return nil }, time.Hour, 64<<20)
	}()
	f()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func replayOne(t *testing.T, sys *kit.System, name string, recorded []byte) {
	t.Helper()
	r, err := replay.New(sys, registry.All)
	if err != nil {
		t.Fatal(err)
	}
	run := func(recorded []byte) (replay.Result, string) {
		var out bytes.Buffer
		result, err := r.Run(t.Context(), bytes.NewReader(recorded), &out)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return result, out.String()
	}
	result, out := run(recorded)
	if result.Same != turns || result.Different+result.Skipped > 0 || result.Ending == nil ||
		result.Ending.Dropped > 0 {
		t.Errorf("%s: %+v %+v %.1500s", name, result, result.Ending, out)
	}
	if t.Failed() {
		return
	}
	lines := bytes.SplitAfter(recorded, []byte("\n"))
	for _, place := range []string{`"reply":{"body":"`, `"calls":[{"ms":0,"path":"`} {
		line := bytes.Clone(lines[4])
		at := bytes.LastIndex(line, []byte(place))
		if at < 0 {
			t.Fatalf("%s: no %s in %.300s", name, place, line)
		}
		line[at+len(place)] ^= 1
		changed := bytes.Join([][]byte{lines[0], line}, nil)
		if result, out := run(changed); result.Different != 1 || out == "" {
			t.Errorf("%s: a changed byte at %s was not found: %+v %s", name, place, result, out)
		}
	}
}
