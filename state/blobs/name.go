package blobs

import (
	"strconv"
	"strings"
	"time"
)

// The file name of a blob holds all its metadata, so that no second file has to agree with it. It has the form
// ID.EXPIRY.TYPE.OWNER, as in 9f...c1.1767225600.image-png.03...9a.

// name returns the file name, or false if the media type could not be parsed from it again.
func (i Info) name() (string, bool) {
	top, sub, ok := strings.Cut(i.MediaType, "/")
	if !ok || !word(top) || !word(sub) {
		return "", false
	}
	return string(i.ID) + "." + strconv.FormatInt(i.Expires.Unix(), 10) + "." + top + "-" + sub + "." + i.Owner, true
}

// word reports whether s consists of lower-case letters and digits, as the media types of all images and videos do.
func word(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// parseName returns what the name of a file says of its content. The name has everything, so no second file can be
// lost.
func parseName(name string) (Info, bool) {
	id, rest, _ := strings.Cut(name, ".")
	expiry, media, _ := strings.Cut(rest, ".")
	seconds, err := strconv.ParseInt(expiry, 10, 64)
	media, owner, _ := strings.Cut(media, ".")
	top, sub, ok := strings.Cut(media, "-")
	info := Info{ID: ID(id), MediaType: top + "/" + sub, Expires: time.Unix(seconds, 0), Owner: owner}
	return info, ok && err == nil && ValidID(id) && word(top) && word(sub) && word(owner)
}

// ValidID reports whether s could be an ID. Nothing else is ever looked for.
func ValidID(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}
