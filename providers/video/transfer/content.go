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

// defaultTypes has the media types of contents for which the provider sends none.
var defaultTypes = map[video.Variant]string{
	video.Video:       "video/mp4",
	video.Thumbnail:   "image/webp",
	video.Spritesheet: "image/jpeg",
}

// passedHeaders lists the headers of a download that are passed on.
var passedHeaders = []string{"Content-Range", "Etag", "Last-Modified"}

// DownloadHeader returns the header of a request for a download. byteRange may be "".
func DownloadHeader(byteRange string) http.Header {
	// The range counts the bytes of the content, so the content must not be compressed.
	h := http.Header{"Accept-Encoding": {"identity"}}
	if byteRange != "" {
		h.Set("Range", byteRange)
	}
	return h
}

// NewContent returns the download in a reply. The error is an *upstream.Failure for a reply that is no image or video,
// such as the page of a provider's error. It closes the reply if it returns an error.
func NewContent(reply *upstream.Reply, v video.Variant) (*video.Content, error) {
	c := &video.Content{Status: reply.Status, Header: make(http.Header, 5)}
	for _, name := range passedHeaders {
		if value := reply.Header.Get(name); value != "" {
			c.Header.Set(name, value)
		}
	}
	if reply.Status == http.StatusRequestedRangeNotSatisfiable {
		reply.Close()
		c.ReadCloser = http.NoBody // the header Content-Range has the size
		return c, nil
	}
	mediaType, ok := contentType(reply.Header.Get("Content-Type"), v)
	if !ok || reply.Status != http.StatusOK && reply.Status != http.StatusPartialContent {
		reply.Close()
		return nil, InvalidReply("the content is not an image or a video")
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

// contentType returns the media type to pass on. ok is false for types of error pages and
// documents.
func contentType(reported string, v video.Variant) (mediaType string, ok bool) {
	name, _, err := mime.ParseMediaType(reported)
	switch {
	case reported == "", name == "application/octet-stream", name == "binary/octet-stream":
		return defaultTypes[v], true
	case err == nil && (strings.HasPrefix(name, "video/") || strings.HasPrefix(name, "image/") && name != "image/svg+xml"):
		return name, true
	}
	return "", false
}

// download reads the body of a reply and classifies its errors.
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

// InvalidReply returns the failure for a reply that is not of the provider's shape. The provider
// may have carried out the request.
func InvalidReply(detail string) *upstream.Failure {
	return &upstream.Failure{Class: upstream.MaybeSent, Err: dialogue.BadUpstream(detail)}
}

// maxID bounds the length of a provider's ids.
const maxID = 512

// ValidID reports whether a provider's id is safe in the path of a URL without escaping. It may
// contain slashes.
func ValidID(id string) bool {
	if len(id) > maxID {
		return false
	}
	for word := range strings.SplitSeq(id, "/") {
		if word == "" || word == "." || word == ".." || strings.ContainsFunc(word, needsEscaping) {
			return false
		}
	}
	return true
}

// needsEscaping reports whether a character of a job's name could change the address that the name
// becomes part of.
func needsEscaping(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-_.~:", r)
}
