package media

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"stagedoor/http/envelope"
	"stagedoor/providers/byterange"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/blobs"
	"stagedoor/state/share"
)

const (
	// contentLife is the time for which an address is valid. Clients download a picture at once.
	contentLife = 60 * time.Minute
	// maxContent bounds one stored picture.
	maxContent = 64 << 20
	// ContentPath is the path below which pictures are served.
	ContentPath = "/v1/images/content/"
)

// Content stores pictures and serves them at signed addresses. An address grants access until it
// expires, and it cannot be forged.
type Content struct {
	store  *blobs.Store
	secret []byte
	now    func() time.Time
	public string
}

// NewContent returns a Content over store that signs with secret. public is the address at which clients
// reach the gateway. If it is empty, the address of the listener that a request came to is used.
func NewContent(store *blobs.Store, secret []byte, public string, now func() time.Time) *Content {
	return &Content{store: store, secret: secret, now: now, public: strings.TrimRight(public, "/")}
}

// Room returns the error that Keep would return now, so that a request can be refused
// before its pictures are made.
func (c *Content) Room(owner state.Owner) error {
	if err := c.store.Room(string(owner), 1); err != nil {
		return notKept(err)
	}
	return nil
}

// Keep stores a picture of an owner durably and returns its address.
func (c *Content) Keep(r *http.Request, owner state.Owner, mediaType string, content io.Reader) (string, error) {
	info, err := c.store.Put(string(owner), content, mediaType, maxContent, c.now().Add(contentLife))
	if err != nil {
		return "", notKept(err)
	}
	expires := strconv.FormatInt(info.Expires.Unix(), 10)
	return c.base(r) + ContentPath + string(
		info.ID,
	) + extensions[mediaType] + "?expires=" + expires + "&signature=" + c.sign(info.ID, expires), nil
}

var extensions = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}

// notKept returns the error for a picture that could not be stored. The picture is lost and not charged.
func notKept(err error) *dialogue.Error {
	e := dialogue.Unavailable("storage_unavailable",
		"the gateway cannot keep pictures at the moment: try again later, or ask for b64_json", 5*time.Second, err)
	var corrupt base64.CorruptInputError
	var refused *share.Refused
	switch {
	case errors.As(err, &refused):
		return envelope.From(err)
	case errors.Is(err, blobs.ErrFull):
		e.Code, e.RetryAfter = "storage_full", time.Minute
	case errors.Is(err, blobs.ErrTooLarge), errors.As(err, &corrupt):
		return dialogue.BadUpstream(err.Error())
	}
	return e
}

// base returns the address at which the client reaches the gateway: the configured address, or else the
// local address of the connection. It does not use Host and forwarded headers, because a client could
// make them point anywhere. A gateway behind a proxy needs the configured address.
func (c *Content) base(r *http.Request) string {
	if c.public != "" {
		return c.public
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return "" // without a connection, the address is only a path
	}
	return scheme + "://" + local.String()
}

// sign returns the signature of an address, which covers the blob and the expiry.
func (c *Content) sign(id blobs.ID, expires string) string {
	mac := hmac.New(sha256.New, c.secret)
	fmt.Fprintf(mac, "%s\x00%s", id, expires)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Serve serves GET of a signed address, without a key. The error does not reveal whether an address is
// wrong or has expired.
func (c *Content) Serve(w http.ResponseWriter, r *http.Request) {
	file, info, err := c.openContent(r)
	if err != nil {
		envelope.Write(w, envelope.Plain, err)
		return
	}
	defer file.Close()
	h := w.Header()
	h.Set("Content-Type", info.MediaType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("ETag", `"`+string(info.ID)+`"`)
	left := int(info.Expires.Sub(c.now()).Seconds())
	h.Set("Cache-Control", "private, max-age="+strconv.Itoa(max(left, 0))+", immutable")
	byterange.Correct(r.Header)
	http.ServeContent(&ranged{ResponseWriter: w}, r, "", time.Time{}, file)
}

// ranged replaces net/http's reply to an unsatisfiable range with the envelope of all errors.
type ranged struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader implements http.ResponseWriter.
func (w *ranged) WriteHeader(status int) {
	if status != http.StatusRequestedRangeNotSatisfiable {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.refused = true
	envelope.Write(w.ResponseWriter, envelope.Plain, noSuchPart())
}

// Write implements http.ResponseWriter.
func (w *ranged) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// ReadFrom implements io.ReaderFrom, so that the kernel can copy files to the socket.
func (w *ranged) ReadFrom(r io.Reader) (int64, error) {
	if w.refused {
		return io.Copy(io.Discard, r)
	}
	return io.Copy(w.ResponseWriter, r)
}

// noSuchPart returns the error for a range that the content does not have.
func noSuchPart() *dialogue.Error {
	return dialogue.Refusal(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable",
		"Range: the content has no such part").About("Range")
}

// openContent returns the content at an address if its signature is right. A wrong signature and an expired content
// have the same answer, so that an address cannot be guessed step by step.
func (c *Content) openContent(r *http.Request) (io.ReadSeekCloser, blobs.Info, error) {
	name, _, _ := strings.Cut(r.PathValue("name"), ".")
	query := r.URL.Query()
	id, expires := blobs.ID(name), query.Get("expires")
	if !blobs.ValidID(name) || !hmac.Equal([]byte(query.Get("signature")), []byte(c.sign(id, expires))) {
		return nil, blobs.Info{}, contentNotFound()
	}
	file, info, err := c.store.Open(id, c.now())
	switch {
	case errors.Is(err, blobs.ErrNotFound):
		return nil, info, contentNotFound()
	case err != nil:
		return nil, info, dialogue.Unavailable("storage_unavailable", "the picture cannot be read at the moment",
			5*time.Second, err)
	}
	return file, info, nil
}

// contentNotFound returns the error for an address without content.
func contentNotFound() *dialogue.Error {
	return dialogue.Refusal(http.StatusNotFound, "content_not_found",
		"there is no picture at this address, or no longer: addresses are valid for 60 minutes")
}
