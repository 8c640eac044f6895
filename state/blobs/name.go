package blobs

import (
	"strconv"
	"strings"
	"time"
)

// A blob's file name says all there is to know of it, so that there is no second
// file to agree with: ID.EXPIRY.TYPE.OWNER, as in 9f...c1.1767225600.image-png.03...9a.
// Files of earlier versions have no owner.

// name is false for a media type that cannot be told from its name again.
func (i Info) name() (string, bool) {
	top, sub, ok := strings.Cut(i.MediaType, "/")
	if !ok || !word(top) || !word(sub) {
		return "", false
	}
	name := string(i.ID) + "." + strconv.FormatInt(i.Expires.Unix(), 10) + "." + top + "-" + sub
	if i.Owner != "" {
		name += "." + i.Owner
	}
	return name, true
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
	media, owner, tagged := strings.Cut(media, ".")
	top, sub, ok := strings.Cut(media, "-")
	info := Info{ID: ID(id), MediaType: top + "/" + sub, Expires: time.Unix(seconds, 0), Owner: owner}
	return info, ok && err == nil && ValidID(id) && word(top) && word(sub) && (!tagged || word(owner))
}

// ValidID reports whether s could be an ID. Nothing else is ever looked for.
func ValidID(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}
