package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"stagedoor/cmd/stagedoor/cli"
)

// Strings is a list of strings; one alone may be written without brackets.
type Strings []string

// Map is a mapping in the order it was written.
type Map[T any] []Entry[T]

// Entry is one pair of a Map.
type Entry[T any] struct {
	Name  string
	Value T
}

// Get finds an entry.
func (m Map[T]) Get(name string) (T, bool) {
	for _, e := range m {
		if e.Name == name {
			return e.Value, true
		}
	}
	var zero T
	return zero, false
}

// names returns the names of the entries in their order.
func (m Map[T]) names() []string {
	var out []string
	for _, e := range m {
		out = append(out, e.Name)
	}
	return out
}

// scalar is a type that reads itself from the text of a scalar.
type scalar interface {
	parse(text string) error
	expected() string
}

// Duration is written as 20s, 5m, 1h30m or 30d.
type Duration time.Duration

// parse implements scalar. A negative duration has no meaning in any setting.
func (d *Duration) parse(text string) error {
	v, err := cli.ParseDuration(text)
	if err == nil && v < 0 {
		err = errors.New("negative")
	}
	*d = Duration(v)
	return err
}

func (d *Duration) expected() string { return "a duration such as 20s, 5m or 30d" }

// HedgeAfter is a Duration, or p95, which is 0.
type HedgeAfter time.Duration

// parse implements scalar. Zero stands for p95, so a duration of zero is refused.
func (h *HedgeAfter) parse(text string) error {
	if *h = 0; text == "p95" {
		return nil
	}
	err := (*Duration)(h).parse(text)
	if err == nil && *h == 0 {
		err = errors.New("no time")
	}
	return err
}

func (h *HedgeAfter) expected() string { return "p95, or a duration such as 3s" }

// Secret is a string that does not show itself: printed, logged or marshalled
// it is ***. file:PATH in the configuration reads it from a file.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

const hidden = "***"

// String implements fmt.Stringer.
func (s Secret) String() string { return hidden }

// Format implements fmt.Formatter, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// MarshalText implements encoding.TextMarshaler, for JSON, YAML and slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// Money is an amount in micro-dollars, written in dollars with at most six
// decimals. It never passes through a floating-point number.
type Money int64

// parse implements scalar. It moves the decimal point in the text, so that no amount is rounded.
func (m *Money) parse(text string) error {
	dollars, fraction, _ := strings.Cut(text, ".")
	const decimals = "000000"
	if dollars == "" || len(fraction) > len(decimals) || strings.IndexFunc(dollars+fraction, notDigit) >= 0 {
		return errors.New("no amount")
	}
	micros, err := strconv.ParseInt(dollars+fraction+decimals[len(fraction):], 10, 64)
	*m = Money(micros)
	return err
}

// notDigit reports whether r is no ASCII digit.
func notDigit(r rune) bool { return r < '0' || r > '9' }

func (m *Money) expected() string { return "dollars with at most six decimals, such as 1.25" }
