package adminapi

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Optional is a member of a JSON object that may be absent (the zero value), null, or a value. In
// an update these mean: keep, remove, and set.
type Optional[T any] struct {
	Given bool
	Value *T // nil means null if Given is true
}

// Some returns an Optional with a value.
func Some[T any](v T) Optional[T] { return Optional[T]{Given: true, Value: &v} }

// Null returns an Optional that is null.
func Null[T any]() Optional[T] { return Optional[T]{Given: true} }

// IsZero reports whether the member is absent, so that omitzero leaves it out.
func (o Optional[T]) IsZero() bool { return !o.Given }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (o *Optional[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*o = Optional[T]{Given: true}
	return json.UnmarshalDecode(d, &o.Value)
}

// MarshalJSONTo implements json.MarshalerTo.
func (o Optional[T]) MarshalJSONTo(e *jsontext.Encoder) error { return json.MarshalEncode(e, o.Value) }

// pointer returns nil if the member is absent, and a pointer to its value otherwise. Null becomes
// the zero value.
func (o Optional[T]) pointer() *T {
	switch {
	case !o.Given:
		return nil
	case o.Value == nil:
		return new(T)
	}
	return o.Value
}

// element returns a zero T. The schema generator finds the type behind an Optional with it.
func (Optional[T]) element() any { return *new(T) }
