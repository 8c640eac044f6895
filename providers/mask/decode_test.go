package mask

import (
	"context"
	"errors"
	"image"
	"io"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/sourcegraph/conc"

	"stagedoor/providers/picture"
)

func TestAtMostTwoPicturesAreInMemoryAtATime(t *testing.T) {
	f, err := picture.NewFile("", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01"+
		"\x08\x00\x00\x00\x00:~\x9bU"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		// Channels belong to the bubble that makes them, so the queue must be empty.
		owner := func(i int) string { return strconv.Itoa(i) }
		started, finish := 0, make(chan struct{})
		decode := func(io.Reader) (image.Image, error) {
			started++
			return image.NewGray(image.Rect(0, 0, 1, 1)), nil
		}
		use := func(image.Image) error {
			<-finish // the picture is in memory until here
			return nil
		}
		var wg conc.WaitGroup
		for i := range maxDecodings {
			wg.Go(func() {
				if err := decodeWith(context.Background(), owner(i), f, decode, use); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		left := errors.New("the client has left")
		wg.Go(func() {
			if err := decodeWith(ctx, owner(maxDecodings), f, decode, use); !errors.Is(err, left) {
				t.Errorf("the waiting picture: got %v, want %v", err, left)
			}
		})
		synctest.Wait()
		if started != maxDecodings {
			t.Errorf("%d pictures are in memory at a time, want %d", started, maxDecodings)
		}
		cancel(left)
		synctest.Wait()
		close(finish)
		wg.Wait()
		if used, waiting := decodings.Load(); used+waiting != 0 {
			t.Errorf("%d decodings are still counted, and %d owners wait", used, waiting)
		}
	})
}
