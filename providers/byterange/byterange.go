// Package byterange corrects the Range header of a request before http.ServeContent or a provider reads it, where
// net/http departs from RFC 9110. It does not serve ranges itself.
package byterange

import (
	"math"
	"net/http"
	"strconv"
	"strings"
)

// beyond is a range that no content has.
var beyond = strconv.FormatInt(math.MaxInt64, 10) + "-"

// Correct removes a Range of another unit than bytes, which a server must ignore (RFC 9110 14.2). It replaces a
// suffix of no bytes ("bytes=-0"), which no content satisfies (RFC 9110 14.1.2), by a range behind the end of any
// content. net/http would answer the first 416 and the second 206 with a last byte before the first one.
func Correct(h http.Header) {
	asked := h.Get("Range")
	if asked == "" {
		return
	}
	unit, set, _ := strings.Cut(asked, "=")
	if !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		h.Del("Range")
		return
	}
	specs := strings.Split(set, ",")
	for i, spec := range specs {
		if suffix, ok := strings.CutPrefix(strings.TrimSpace(spec), "-"); ok && isZero(suffix) {
			specs[i] = beyond
		}
	}
	h.Set("Range", "bytes="+strings.Join(specs, ","))
}

// isZero reports whether digits are the number 0.
func isZero(digits string) bool { return digits != "" && strings.Trim(digits, "0") == "" }
