package adminapi

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Optional tells absent (the zero value), null and a value apart.
type Optional[T any] struct {
	Given bool
	Value *T // nil: null
}

// Some is a value that is given.
func Some[T any](v T) Optional[T] { return Optional[T]{Given: true, Value: &v} }

// Null is null, given.
func Null[T any]() Optional[T] { return Optional[T]{Given: true} }

// IsZero leaves what is not given out of what is written.
func (o Optional[T]) IsZero() bool { return !o.Given }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (o *Optional[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*o = Optional[T]{Given: true}
	return json.UnmarshalDecode(d, &o.Value)
}

// MarshalJSONTo implements json.MarshalerTo.
func (o Optional[T]) MarshalJSONTo(e *jsontext.Encoder) error { return json.MarshalEncode(e, o.Value) }

// ref is a pointer to the value, which is the zero one for null; nil: it was not
// given.
func (o Optional[T]) ref() *T {
	switch {
	case !o.Given:
		return nil
	case o.Value == nil:
		return new(T)
	}
	return o.Value
}

func (Optional[T]) element() any { return *new(T) }
