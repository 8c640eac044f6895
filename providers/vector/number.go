package vector

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"stagedoor/providers/dialogue"
)

// MaxDimensions is the longest vector that is read number by number. Models make at most 4096 numbers.
const MaxDimensions = 64 << 10

// numeric are the bytes of a JSON list of numbers without the brackets around it.
var numeric = func() (set [256]bool) {
	for _, c := range []byte("0123456789+-.eE, \t\r\n") {
		set[c] = true
	}
	return set
}()

// IsVector reports whether raw, which is one JSON value, has the form of a vector: a list of numbers that is not empty,
// or a string.
func IsVector(raw []byte) bool {
	if n := len(raw); n > 2 && raw[0] == '[' && raw[n-1] == ']' {
		digits := false
		for _, c := range raw[1 : n-1] {
			if !numeric[c] {
				return false
			}
			digits = digits || c >= '0' && c <= '9'
		}
		return digits
	}
	return len(raw) > 2 && raw[0] == '"'
}

// Form appends the vector of input i as the client wants it. raw is the vector as the upstream d wrote it. Vectors in
// the same form are copied and not read, unless they must be cut or scaled.
func (r *Request) Form(dst []byte, i int, raw []byte, d *Dialect) ([]byte, error) {
	want := r.Inputs[i].Dimensions
	scale := want > 0 && d.CutsUnscaled && d.Shape.Name != r.Inbound
	if !scale && (raw[0] == '"') == r.Base64 {
		return append(dst, raw...), nil
	}
	v, err := Parse(raw)
	if err != nil {
		return dst, err
	}
	if scale {
		if int64(len(v)) < want {
			return dst, dialogue.BadUpstream("a vector shorter than it was asked for")
		}
		v = v[:want]
		Scale(v)
	}
	return r.Append(dst, v), nil
}

// Append appends a vector as the client wants it.
func (r *Request) Append(dst []byte, v []float32) []byte {
	if r.Base64 {
		return appendBase64(dst, v)
	}
	dst = append(dst, '[')
	for i, f := range v {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, float64(f), 'g', -1, 32)
	}
	return append(dst, ']')
}

// appendBase64 appends a vector as a JSON string: its numbers as 32-bit floats in little-endian
// order, in base64.
func appendBase64(dst []byte, v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), b), '"')
}

// Parse returns the numbers of a vector in either form. An error is a *dialogue.Error.
func Parse(raw []byte) ([]float32, error) {
	if len(raw) > 2 && raw[0] == '"' {
		b, err := base64.StdEncoding.DecodeString(string(raw[1 : len(raw)-1]))
		if err != nil || len(b)%4 != 0 || len(b)/4 > MaxDimensions {
			return nil, dialogue.BadUpstream("a vector that is not base64 of 32-bit numbers")
		}
		v := make([]float32, len(b)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		return v, nil
	}
	if !IsVector(raw) {
		return nil, dialogue.BadUpstream("a vector that is not a list of numbers")
	}
	n := bytes.Count(raw, []byte{','}) + 1
	if n > MaxDimensions {
		return nil, dialogue.BadUpstream("a vector of too many numbers")
	}
	v := make([]float32, 0, n)
	for part := range bytes.SplitSeq(raw[1:len(raw)-1], []byte{','}) {
		f, err := strconv.ParseFloat(string(bytes.TrimSpace(part)), 32)
		if err != nil {
			return nil, dialogue.BadUpstream("a vector with something that is not a 32-bit number")
		}
		v = append(v, float32(f))
	}
	return v, nil
}

// Scale brings a vector to length 1. One that has this length already, or has no direction, stays as it is.
func Scale(v []float32) {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) || math.Abs(length-1) < 1e-6 {
		return
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
}
