package sqlite

import (
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"stagedoor/state/requestlog"
)

// A text of a record may be a part of a large one, such as the body of a request, which a known kind must not keep in
// memory.
func TestKnownKindsKeepNoTextOfARecord(t *testing.T) {
	log, err := Open(Options{Path: filepath.Join(t.TempDir(), FileName), Now: time.Now, Logger: slog.Default(),
		Limits: func() requestlog.Limits { return requestlog.Limits{Keep: time.Hour, Bytes: 1 << 30} },
		Room:   func() int64 { return 1 << 30 }})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	add := func(began time.Time) weak.Pointer[byte] {
		body := "maple" + strings.Repeat(" ", 1<<20)
		err := log.Append(t.Context(), []requestlog.Record{{ID: "req_1", Began: began, Model: body[:5]}})
		if err != nil {
			t.Fatal(err)
		}
		return weak.Make(unsafe.StringData(body))
	}
	now := time.Now()
	for _, began := range []time.Time{now, now.Add(time.Minute)} { // the later one changes when the kind was used
		body := add(began)
		if runtime.GC(); body.Value() != nil {
			t.Errorf("the body of a request of %s is kept", began.Sub(now))
		}
	}
	if n := len(log.kinds.kinds); n != 1 {
		t.Errorf("%d kinds are known", n)
	}
}
