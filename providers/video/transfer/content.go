package transfer

import (
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
)

// standard are the types of content whose provider does not say (wire/videos.md 5).
var standard = map[video.Variant]string{video.Video: "video/mp4", video.Thumbnail: "image/webp", video.Spritesheet: "image/jpeg"}

// passed are the headers of a download that say something of the asset itself.
var passed = []string{"Content-Range", "Etag", "Last-Modified"}

// DownloadHeader is what a download is asked for with.
func DownloadHeader(byteRange string) http.Header {
	// A range of something compressed would be of no use.
	h := http.Header{"Accept-Encoding": {"identity"}}
	if byteRange != "" {
		h.Set("Range", byteRange)
	}
	return h
}

// NewContent makes a download of a reply, which it closes if it fails.
func NewContent(reply *upstream.Reply, v video.Variant) (*video.Content, error) {
	c := &video.Content{Status: reply.Status, Header: make(http.Header, 5)}
	for _, name := range passed {
		if value := reply.Header.Get(name); value != "" {
			c.Header.Set(name, value)
		}
	}
	if reply.Status == http.StatusRequestedRangeNotSatisfiable {
		reply.Close()
		c.ReadCloser = http.NoBody // the range says it all
		return c, nil
	}
	mediaType, ok := typeOf(reply.Header.Get("Content-Type"), v)
	if !ok || reply.Status != http.StatusOK && reply.Status != http.StatusPartialContent {
		reply.Close()
		return nil, InvalidReply("the content is of another kind")
	}
	c.Header.Set("Content-Type", mediaType)
	body, err := reply.Body()
	if err != nil {
		reply.Close()
		return nil, reply.Failed(err)
	}
	if n := reply.Length(); n >= 0 {
		c.Header.Set("Content-Length", strconv.FormatInt(n, 10))
	}
	c.ReadCloser = &download{reply: reply, body: body}
	return c, nil
}

// typeOf is the media type to pass on. ok is false for an answer that is no
// asset: a page, or a document about an error.
func typeOf(told string, v video.Variant) (mediaType string, ok bool) {
	name, _, err := mime.ParseMediaType(told)
	switch {
	case told == "", name == "application/octet-stream", name == "binary/octet-stream":
		return standard[v], true
	case err == nil && (strings.HasPrefix(name, "video/") || strings.HasPrefix(name, "image/") && name != "image/svg+xml"):
		return name, true
	}
	return "", false
}

// download classifies what goes wrong on the way.
type download struct {
	reply *upstream.Reply
	body  io.Reader
}

// Read implements io.Reader.
func (d *download) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	if err != nil && err != io.EOF {
		err = d.reply.Failed(err)
	}
	return n, err
}

// Close implements io.Closer.
func (d *download) Close() error {
	d.reply.Close()
	return nil
}

// InvalidReply is a reply that is not of its shape. It may have been to a request that
// was carried out.
func InvalidReply(detail string) *upstream.Failure {
	return &upstream.Failure{Class: upstream.MaybeSent, Err: dialogue.BadUpstream(detail)}
}

// maxID bounds the names that providers give.
const maxID = 512

// ValidID reports whether a provider's name for something can be a part of a path
// as it is: words with slashes between.
func ValidID(id string) bool {
	if len(id) > maxID {
		return false
	}
	for word := range strings.SplitSeq(id, "/") {
		if word == "" || word == "." || word == ".." || strings.ContainsFunc(word, unusual) {
			return false
		}
	}
	return true
}

func unusual(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-_.~:", r)
}
