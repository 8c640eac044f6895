package browser

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"
)

// ErrForged says that a form was sent by another site, or was drawn for another browser or another purpose.
var ErrForged = errors.New("the form does not come from this browser's page")

// FormToken returns the token that goes into a form drawn for v, and that CheckForm expects. purpose distinguishes the
// forms.
func (g *Guard) FormToken(v *Visitor, purpose string) string {
	mac := hmac.New(sha256.New, g.options.Key)
	for _, part := range []string{"form", v.binding, purpose} {
		// Lengths keep two pairs of parts from being one text.
		mac.Write([]byte{byte(len(part) >> 8), byte(len(part))})
		mac.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// CheckForm returns ErrForged unless r is a form that was drawn for v and for purpose.
func (g *Guard) CheckForm(r *http.Request, v *Visitor, purpose, token string) error {
	if g.foreign(r) || v.binding == "" || !hmac.Equal([]byte(token), []byte(g.FormToken(v, purpose))) {
		return ErrForged
	}
	return nil
}

// foreign reports whether the browser says that another site sent r. A page whose address is not sent (Referrer-Policy)
// posts with the origin null. On plain http outside of loopback, browsers send no other hint, so such a request is not
// foreign and only its token decides.
func (g *Guard) foreign(r *http.Request) bool {
	if !g.secure && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "null" {
		return false
	}
	return g.origin.Check(r) != nil
}

// maxForm bounds a form. The largest field has a few kilobytes.
const maxForm = 64 << 10

// Errors of ReadForm, ReadUpload and ReadBody.
var (
	ErrFormMedia = errors.New("the body must be application/x-www-form-urlencoded")
	ErrFormSize  = errors.New("the body is too large")
	ErrFormText  = errors.New("the body is not a form")
)

// ReadForm returns the form in a body. Parameters in the query are not part of it. The error is ErrFormMedia,
// ErrFormSize or ErrFormText.
func ReadForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil ||
		media != "application/x-www-form-urlencoded" {
		return nil, ErrFormMedia
	}
	body, err := ReadBody(w, r)
	if err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, ErrFormText
	}
	for name, all := range values {
		for _, v := range append(all, name) {
			if !utf8.ValidString(v) {
				return nil, ErrFormText
			}
		}
	}
	return values, nil
}

// ReadUpload reads a form of multipart/form-data with a file of at most most bytes. The file is the value of its field.
// All other fields together have the size of a form. Its error is one of those of ReadForm.
func ReadUpload(w http.ResponseWriter, r *http.Request, most int64) (url.Values, error) {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" {
		return nil, ErrFormMedia
	}
	var large *http.MaxBytesError
	values, parts := url.Values{}, multipart.NewReader(http.MaxBytesReader(w, r.Body, most+maxForm), params["boundary"])
	for {
		part, err := parts.NextRawPart()
		switch {
		case err == io.EOF:
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // as in ReadBody
			return values, nil
		case errors.As(err, &large):
			return nil, ErrFormSize
		case err != nil:
			return nil, ErrFormText
		}
		text, err := io.ReadAll(part)
		switch {
		case errors.As(err, &large) || int64(len(text)) > most:
			return nil, ErrFormSize
		case err != nil, part.FileName() == "" && !utf8.Valid(text):
			return nil, ErrFormText
		}
		values.Add(part.FormName(), string(text))
	}
}

// ReadBody returns a body of any type that is no larger than a form. Afterwards the request has no read deadline. The
// error is ErrFormSize or ErrFormText.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, ErrFormSize
	case err != nil:
		return nil, ErrFormText // the client left or stalled
	}
	// The read deadline bounds how long the body may take. It must not end the work on the answer, which may wait for
	// the hashing of other passwords.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // not every writer has one
	return body, nil
}
