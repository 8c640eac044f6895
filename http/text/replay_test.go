package text

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestAStoredStreamIsSentInPiecesOfWholeEvents: it may be long, and must be able to end between two pieces.
func TestAStoredStreamIsSentInPiecesOfWholeEvents(t *testing.T) {
	var log strings.Builder
	const events = 2000
	for n := range events {
		fmt.Fprintf(&log, "event: e\ndata: {\"sequence_number\":%d,\"x\":%q}\n\n", n, strings.Repeat("x", n%200))
	}
	for _, after := range []int64{-1, 0, 1000, events - 2, events - 1, events} {
		var got strings.Builder
		pieces, number := 0, after
		err := eachPiece([]byte(log.String()), after, func(piece []byte, last int64) error {
			pieces++
			got.Write(piece)
			if !strings.HasSuffix(string(piece), "\n\n") || last <= number ||
				!strings.Contains(string(piece), fmt.Sprintf(`"sequence_number":%d,`, last)) {
				t.Errorf("after %d: a piece up to %d ends with %q", after, last, piece[max(len(piece)-40, 0):])
			}
			number = last
			return nil
		})
		_, want, _ := strings.Cut(log.String(), fmt.Sprintf(`"sequence_number":%d,`, after))
		if _, want, _ = strings.Cut(want, "\n\n"); after < 0 {
			want = log.String()
		}
		if err != nil || got.String() != want || len(want) > 2*pieceBytes && pieces < 2 {
			t.Errorf("after %d: %d bytes of %d in %d pieces, %v", after, got.Len(), len(want), pieces, err)
		}
	}
	enough, pieces := errors.New("enough"), 0
	err := eachPiece([]byte(log.String()), -1, func([]byte, int64) error { pieces++; return enough })
	if !errors.Is(err, enough) || pieces != 1 {
		t.Errorf("%v after %d pieces", err, pieces)
	}
}
