package upstream_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"stagedoor/providers/upstream"
)

type event struct{ name, data string }

func readAll(t testing.TB, src io.Reader) ([]event, error) {
	t.Helper()
	r := upstream.NewEventReader(src)
	var out []event
	for {
		ev, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return out, err
		}
		out = append(out, event{ev.Name, string(ev.Data)})
	}
}

func TestEventReaderMeetsTheStandard(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want []event
	}{
		"plain":                {"data: a\n\ndata: b\n\n", []event{{"", "a"}, {"", "b"}}},
		"named":                {"event: x\ndata: a\n\ndata: b\n\n", []event{{"x", "a"}, {"", "b"}}},
		"crlf":                 {"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []event{{"x", "a"}, {"", "b"}}},
		"cr":                   {"event: x\rdata: a\r\rdata: b\r\r", []event{{"x", "a"}, {"", "b"}}},
		"mixed":                {"data: a\r\n\ndata: b\n\r\n\rdata: c\r\r\n", []event{{"", "a"}, {"", "b"}, {"", "c"}}},
		"no space":             {"data:a\n\n", []event{{"", "a"}}},
		"two spaces":           {"data:  a\n\n", []event{{"", " a"}}},
		"nothing in it":        {"data:\n\ndata: \n\nevent: x\ndata\n\ndata: a\n\n", []event{{"", "a"}}},
		"several lines":        {"data: a\ndata: b\ndata\ndata:c\n\n", []event{{"", "a\nb\n\nc"}}},
		"comments and fields":  {": hi\n\nid: 1\nretry: 5\ndata: a\n: x\nfoo: bar\n\n", []event{{"", "a"}}},
		"name without data":    {"event: x\n\ndata: a\n\n", []event{{"", "a"}}},
		"byte order mark":      {"\ufeffdata: a\n\n", []event{{"", "a"}}},
		"many blank lines":     {"\n\n\ndata: a\n\n\n\ndata: b\n\n", []event{{"", "a"}, {"", "b"}}},
		"unfinished":           {"data: a\n\ndata: b", []event{{"", "a"}, {"", "b"}}},
		"unfinished, one line": {"data: a\n\nevent: x\ndata: b\n", []event{{"", "a"}, {"x", "b"}}},
		"nothing":              {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for how, src := range map[string]io.Reader{
				"at once":      strings.NewReader(tc.in),
				"byte by byte": iotest.OneByteReader(strings.NewReader(tc.in)),
				"with the end": iotest.DataErrReader(strings.NewReader(tc.in)),
			} {
				got, err := readAll(t, src)
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if len(got) != len(tc.want) {
					t.Fatalf("%s: got %q, want %q", how, got, tc.want)
				}
				for i := range got {
					if got[i] != tc.want[i] {
						t.Errorf("%s: event %d is %q, want %q", how, i, got[i], tc.want[i])
					}
				}
			}
		})
	}
}

func TestEventReaderTakesLongLines(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	got, err := readAll(t, iotest.HalfReader(strings.NewReader("event: big\ndata: a\ndata: "+long+"\n\ndata: b\n\n")))
	if err != nil || len(got) != 2 || got[0].data != "a\n"+long || got[0].name != "big" || got[1].data != "b" {
		t.Fatalf("%d events, %v", len(got), err)
	}
}

func TestEventReaderRefusesEndlessLines(t *testing.T) {
	_, err := readAll(t, io.MultiReader(strings.NewReader("data: "), endless{}))
	if !errors.Is(err, upstream.ErrEventTooLarge) {
		t.Fatalf("got %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestEventReaderReportsACutBody(t *testing.T) {
	cut := errors.New("connection reset")
	got, err := readAll(t, io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(cut)))
	if !errors.Is(err, cut) || len(got) != 1 {
		t.Fatalf("got %q, %v", got, err)
	}
}

// Only events that look the way clients expect are forwarded as they came.
func TestPlainEventsAreRaw(t *testing.T) {
	for in, want := range map[string]bool{
		"data: a\n\n":                true,
		"event: x\ndata: a\n\n":      true,
		"data: a\r\n\r\n":            false,
		"data:a\n\n":                 false,
		": c\ndata: a\n\n":           false,
		"id: 1\ndata: a\n\n":         false,
		"data: a\ndata: b\n\n":       false,
		"\ufeffdata: a\n\n":          false,
		"data: a":                    false,
		"data: 1\n\n\n\ndata: a\n\n": true,
	} {
		r := upstream.NewEventReader(strings.NewReader(in))
		var ev upstream.Event
		for {
			next, err := r.Next()
			if err != nil {
				break
			}
			ev = next
			ev.Raw = []byte(string(next.Raw))
		}
		if ev.Plain != want {
			t.Errorf("%q: plain is %v", in, ev.Plain)
		}
		if want && !strings.HasSuffix(in, string(ev.Raw)) {
			t.Errorf("%q: raw is %q", in, ev.Raw)
		}
	}
}

// However the bytes are cut, the events are the same.
func FuzzEventReader(f *testing.F) {
	f.Add("event: x\r\ndata: a\r\n\r\ndata:b\n\n: c\n\rdata: d", uint8(3))
	f.Add("\ufeffdata: \xff\n\n", uint8(1))
	f.Fuzz(func(t *testing.T, in string, chunk uint8) {
		whole, err := readAll(t, strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		cut, err := readAll(t, &chunked{in, int(chunk%16) + 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(whole) != len(cut) {
			t.Fatalf("%q and %q", whole, cut)
		}
		for i := range whole {
			if whole[i] != cut[i] {
				t.Fatalf("event %d: %q and %q", i, whole[i], cut[i])
			}
		}
	})
}

type chunked struct {
	rest string
	n    int
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, c.rest[:min(c.n, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

// TestUsedBuffersShowNothingOfTheirLastStream: streams that follow each other get the buffers of those before them, and
// only their own events. A reader that has given its buffer back returns an error.
func TestUsedBuffersShowNothingOfTheirLastStream(t *testing.T) {
	for i := range 50 {
		secret := strings.Repeat(string(rune('a'+i%26)), 700*(1+i%20))
		in := strings.Repeat("data: "+secret+"\n\n", 3) + "data: cut"
		r := upstream.NewEventReader(strings.NewReader(in))
		for n := 0; ; n++ {
			ev, err := r.Next()
			if err != nil {
				if n != 4 || !errors.Is(err, io.EOF) {
					t.Fatalf("stream %d ended with %v after %d events", i, err, n)
				}
				break
			}
			want := secret
			if n == 3 {
				want = "cut"
			}
			if string(ev.Data) != want {
				t.Fatalf("stream %d, event %d is %.20q of %d bytes", i, n, ev.Data, len(ev.Data))
			}
		}
		r.Release()
		if ev, err := r.Next(); err == nil || errors.Is(err, io.EOF) {
			t.Fatalf("a released reader returned %q, %v", ev.Data, err)
		}
	}
}

func BenchmarkEventReader(b *testing.B) {
	in := strings.Repeat("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n", 100)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		r := upstream.NewEventReader(strings.NewReader(in))
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
		r.Release()
	}
}
