package images

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// Limits of edits: pictures in one request, and bytes of a picture or of a mask. They are the
// vendor's.
const (
	MaxSources   = 16
	MaxSource    = 50 << 20
	MaxMask      = 4 << 20
	maxOldSource = 4 << 20 // of legacy-image-2
	maxDataHead  = 128     // length of a data URL up to its comma
)

// FileLimit returns the most bytes of a file in a field of a form, or 0 if the field is not for
// files.
func FileLimit(field string) int64 {
	switch field {
	case "image", "image[]":
		return MaxSource
	case "mask":
		return MaxMask
	}
	return 0
}

// File is a picture in a form, with the name of its field.
type File struct {
	Field string
	*picture.File
}

// CheckEditForm decodes an edit that was sent as a form. If it returns an error, the caller must
// close the files; otherwise the Request has them.
func CheckEditForm(texts []Text, files []File, resolve Resolve) (*picture.Request, error) {
	if name := form(texts).twice(); name != "" {
		return nil, dialogue.Invalid(name, "is given twice")
	}
	r, err := check(form(texts), picture.Edit, resolve)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.Field != "mask" {
			r.Sources = append(r.Sources, f.File)
			continue
		}
		if r.Mask != nil {
			return nil, dialogue.Invalid("mask", "is given twice")
		}
		r.Mask = f.File
	}
	if err := checkPictures(r, "image", resolve); err != nil {
		return nil, err
	}
	return r, nil
}

// CheckEdit decodes an edit that was sent as JSON. body must not change afterwards, because the
// Request keeps it. If CheckEdit returns an error, it has closed all files.
func CheckEdit(body []byte, resolve Resolve) (*picture.Request, error) {
	in := newDocument(body)
	r, err := check(in, picture.Edit, resolve)
	if err != nil {
		return nil, err
	}
	r.Body = body
	if err = readReferences(r, in); err == nil {
		err = checkPictures(r, "images", resolve)
	}
	if err != nil {
		_ = r.Close() // err is the error that the client needs
		return nil, err
	}
	return r, nil
}

// readReferences reads the pictures of an edit in JSON.
func readReferences(r *picture.Request, in *document) (err error) {
	list := in.values["images"]
	switch {
	case !list.Exists():
		return dialogue.Missing("images")
	case !list.IsArray():
		return dialogue.Invalid("images", "must be an array")
	case list.Get("#").Int() > MaxSources:
		return tooMany("images")
	}
	for i, v := range list.Array() {
		f, err := readReference("images."+strconv.Itoa(i), v, MaxSource)
		if err != nil {
			return err
		}
		r.Sources = append(r.Sources, f)
	}
	if mask := in.values["mask"]; mask.Exists() {
		r.Mask, err = readReference("mask", mask, MaxMask)
	}
	return err
}

// readReference reads the picture of an object with image_url. at is its place in the request.
func readReference(at string, v gjson.Result, limit int64) (*picture.File, error) {
	switch {
	case !v.IsObject():
		return nil, dialogue.Invalid(at, "must be an object with image_url")
	case v.Get("file_id").Exists() && v.Get("file_id").Type != gjson.Null:
		return nil, dialogue.Invalid(at+".file_id",
			"the gateway stores no files: send the picture in image_url as a data URL")
	case v.Get("image_url").Type != gjson.String:
		return nil, dialogue.Missing(at + ".image_url")
	}
	at += ".image_url"
	encoded, ok := dataURL(v.Get("image_url").Str)
	if !ok {
		return nil, dialogue.Invalid(at, "must be a data URL in base64, because addresses are not fetched")
	}
	f, err := picture.ReadFile("", base64.NewDecoder(base64.StdEncoding, strings.NewReader(encoded)), limit, "")
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, picture.ErrTooLarge):
		return nil, dialogue.FileTooLarge(at, limit)
	case errors.Is(err, picture.ErrFormat), errors.Is(err, picture.ErrCorrupt):
		return nil, dialogue.Invalid(at, "must be a whole PNG, JPEG or WebP picture")
	}
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) || strings.Contains(err.Error(), "unexpected EOF") {
		return nil, dialogue.Invalid(at, "is not valid base64")
	}
	return nil, err
}

// dataURL returns the base64 of a URL such as data:image/png;base64,...
func dataURL(s string) (encoded string, ok bool) {
	comma := strings.IndexByte(s[:min(len(s), maxDataHead)], ',')
	if comma < 0 {
		return "", false
	}
	head := strings.ToLower(s[:comma])
	return s[comma+1:], strings.HasPrefix(head, "data:") && strings.HasSuffix(head, ";base64")
}

// tooMany returns the error for more than MaxSources pictures.
func tooMany(field string) *dialogue.Error {
	return dialogue.Invalid(field, "must not be more than "+count(MaxSources, "picture"))
}

// checkPictures checks the rules about sources and mask.
func checkPictures(r *picture.Request, field string, resolve Resolve) error {
	f := familyOf(resolve(r.Model))
	switch {
	case len(r.Sources) == 0:
		return dialogue.Missing(field)
	case len(r.Sources) > MaxSources:
		return tooMany(field)
	case f.legacy && len(r.Sources) > 1:
		return dialogue.Invalid(field, "must be one picture for this model")
	}
	first := r.Sources[0]
	if f.legacy && (first.MediaType != "image/png" || first.Width != first.Height || first.Size > maxOldSource) {
		return dialogue.Invalid(field, "must be a square PNG of at most 4 MiB for this model")
	}
	switch {
	case r.Mask == nil:
		return nil
	case r.Mask.MediaType != "image/png":
		return dialogue.Invalid("mask", "must be a PNG")
	case r.Mask.Dimensions() != first.Dimensions():
		return dialogue.Invalid("mask",
			fmt.Sprintf("must be as large as the first picture, %s, not %s", first.Dimensions(), r.Mask.Dimensions()))
	}
	return nil
}

// count returns a number with its noun, as "3 pictures".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
