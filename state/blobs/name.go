package blobs

import (
	"strconv"
	"strings"
	"time"
)

// A blob's file name says all there is to know of it, so that there is no second
// file to agree with: ID.EXPIRY.TYPE, as in 9f...c1.1767225600.image-png.

// name is false for a media type that cannot be told from its name again.
func (i Info) name() (string, bool) {
	top, sub, ok := strings.Cut(i.MediaType, "/")
	if !ok || !word(top) || !word(sub) {
		return "", false
	}
	return string(i.ID) + "." + strconv.FormatInt(i.Expires.Unix(), 10) + "." + top + "-" + sub, true
}

// word wants lower-case letters and digits, as all types of pictures and films
// have.
func word(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

func parseName(name string) (Info, bool) {
	id, rest, _ := strings.Cut(name, ".")
	expiry, media, _ := strings.Cut(rest, ".")
	seconds, err := strconv.ParseInt(expiry, 10, 64)
	top, sub, ok := strings.Cut(media, "-")
	info := Info{ID: ID(id), MediaType: top + "/" + sub, Expires: time.Unix(seconds, 0)}
	return info, ok && err == nil && ValidID(id) && word(top) && word(sub)
}

// ValidID reports whether s could be an ID. Nothing else is ever looked for.
func ValidID(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}
