package kit

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// muted is the handler for the library's log, which contains message bodies and panic values and therefore prompts and
// keys. It passes texts, numbers and names of actors, and only the type of every other value. The library's records are
// for debugging; this package logs what matters itself.
type muted struct{ slog.Handler }

func (h muted) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, quieter(level))
}

// Handle passes on a record with its level lowered and its attributes cleaned.
func (h muted) Handle(ctx context.Context, record slog.Record) error {
	clean := slog.NewRecord(record.Time, quieter(record.Level), record.Message, record.PC)
	record.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(mute(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

// WithAttrs cleans attributes that belong to a logger, since Handle does not see them.
func (h muted) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = mute(a)
	}
	return muted{h.Handler.WithAttrs(clean)}
}

func (h muted) WithGroup(name string) slog.Handler { return muted{h.Handler.WithGroup(name)} }

// quieter makes debug records of everything below a warning.
func quieter(level slog.Level) slog.Level {
	if level < slog.LevelWarn {
		return slog.LevelDebug
	}
	return level
}

// mute returns an attribute without anything that a client may have written.
func mute(a slog.Attr) slog.Attr {
	switch a.Key {
	case "message", "reason", "exception": // here even plain strings are bodies
		return slog.String(a.Key, fmt.Sprintf("%T", a.Value.Any()))
	}
	if a.Value.Kind() != slog.KindAny {
		return a
	}
	if pid, ok := a.Value.Any().(*actor.PID); ok {
		return slog.String(a.Key, pid.GetId())
	}
	return slog.String(a.Key, fmt.Sprintf("%T", a.Value.Any()))
}
