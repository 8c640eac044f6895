package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"time"
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

// scalar is a type that reads itself from the text of a scalar.
type scalar interface {
	parse(text string) error
	expected() string
}

// Duration is written as 20s, 5m or 1h30m.
type Duration time.Duration

func (d *Duration) parse(text string) error {
	v, err := time.ParseDuration(text)
	if err == nil && v < 0 {
		err = errors.New("negative")
	}
	*d = Duration(v)
	return err
}

func (d *Duration) expected() string { return "a duration such as 20s or 5m" }

// Secret is a string that does not show itself: printed, logged or marshalled
// it is ***. file:PATH in the configuration reads it from a file.
type Secret string

// Reveal is the secret itself.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string               { return "***" }
func (s Secret) GoString() string             { return "***" }
func (s Secret) Format(f fmt.State, _ rune)   { fmt.Fprint(f, "***") }
func (s Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }
func (s Secret) LogValue() slog.Value         { return slog.StringValue("***") }

// Money is an amount in micro-dollars, written in dollars with at most six
// decimals. It never passes through a floating-point number.
type Money int64

func (m *Money) parse(text string) error {
	r, ok := new(big.Rat).SetString(text)
	if !ok || r.Sign() < 0 {
		return errors.New("no amount")
	}
	r.Mul(r, big.NewRat(1_000_000, 1))
	if !r.IsInt() || !r.Num().IsInt64() {
		return errors.New("too fine or too large")
	}
	*m = Money(r.Num().Int64())
	return nil
}

func (m *Money) expected() string { return "dollars with at most six decimals, such as 1.25" }
