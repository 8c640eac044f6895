package media

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"unicode/utf8"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/picture"
	"stagedoor/providers/video/mp4"
)

// FormLimits bound a multipart/form-data body.
type FormLimits struct {
	Total int64 // the whole body
	// File returns the most bytes of a picture in a field, or 0 if the field accepts none.
	File func(field string) int64
	// Video is the same for videos. Such a field may also be a text. If Video is nil, no
	// field accepts videos.
	Video func(field string) int64
	// Names lists the known fields. A field whose name differs from one only in case is
	// refused.
	Names *fields.Names
	// Dir is the directory for large files. An empty string means the system's temporary
	// directory.
	Dir string
	// Sum, if not nil, is written the names and contents of the parts. The boundary, which differs each time a form is
	// sent, is not part of them.
	Sum io.Writer
}

// These limits apply to parts that are not files.
const (
	maxParts = 128
	maxText  = 256 << 10 // of one field; a prompt has at most 32000 characters
	maxTexts = 1 << 20   // of all
)

// Form has the fields and files of a body in the order in which they arrived.
// The order is kept, because a request may name several pictures under one field.
type Form struct {
	Fields []FormField
	Files  []FormFile
	Videos []FormVideo
}

// FormField is a text field.
type FormField struct{ Name, Value string }

// FormFile is a picture with the name of its field.
type FormFile struct {
	Field string
	*picture.File
}

// FormVideo is a video with the name of its field.
type FormVideo struct {
	Field string
	*mp4.File
}

// Close removes the files.
func (f *Form) Close() error {
	var errs []error
	for _, file := range f.Files {
		errs = append(errs, file.Close())
	}
	for _, file := range f.Videos {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

// ReadForm reads a body of multipart/form-data. It recognises files by their content and refuses all but PNG, JPEG and
// WebP pictures and MP4 videos. Mistakes of the client are *dialogue.Error, and an error of the disk is returned as it
// is. No file is left behind after an error.
// Files are checked while they arrive and large ones go to disk, so a form costs little memory whatever its size.
func ReadForm(w http.ResponseWriter, r *http.Request, limits FormLimits) (*Form, error) {
	u, err := newUpload(w, r, limits.Total)
	if err != nil {
		return nil, err
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return nil, dialogue.UnsupportedMedia("Content-Type must be multipart/form-data with a boundary")
	}
	if err := checkEncoding(r.Header); err != nil {
		return nil, err
	}
	form, err := parseForm(multipart.NewReader(u, params["boundary"]), limits)
	if err != nil {
		return nil, err
	}
	u.drain()
	return form, nil
}

// parseForm reads all parts of a form. On an error it removes the files that it has stored so far.
func parseForm(parts *multipart.Reader, limits FormLimits) (form *Form, err error) {
	f := &formReader{limits: limits, form: new(Form)}
	defer func() {
		if err != nil {
			_ = f.form.Close() // err is the first error
		}
	}()
	for n := 1; ; n++ {
		p, err := parts.NextRawPart()
		switch {
		case err == io.EOF:
			return f.form, nil
		case err != nil:
			return nil, badForm(err)
		case n > maxParts:
			return nil, dialogue.BadRequest("invalid_form", fmt.Sprintf("the form has more than %d parts", maxParts))
		}
		if err := f.part(p); err != nil {
			return nil, err
		}
	}
}

// formReader reads the parts of a form and counts what they have together.
type formReader struct {
	limits FormLimits
	form   *Form
	texts  int
}

// isForm reports whether the body of a route that takes forms and JSON is a form. It returns an error for a body that
// is neither, and the one about its size if it is also larger than most. A body without a type counts as JSON.
func isForm(w http.ResponseWriter, r *http.Request, most int64) (bool, error) {
	reported := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(reported)
	switch {
	case reported == "", err == nil && isJSON(media):
		return false, nil
	case err == nil && media == "multipart/form-data" && params["boundary"] != "":
		return true, nil
	}
	if _, err := newUpload(w, r, most); err != nil {
		return false, err
	}
	return false, dialogue.UnsupportedMedia(
		"Content-Type must be application/json, or multipart/form-data with a boundary")
}

// isJSON reports whether a media type is JSON.
func isJSON(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

// part reads one part as a file, as a video or as a text, by what the route expects under its name.
// What a part is follows from its field and not from what the client says of it, because a client
// could otherwise have a file of any kind stored under the name of a text.
func (f *formReader) part(p *multipart.Part) error {
	name := p.FormName()
	if name == "" || len(name) > 128 || !utf8.ValidString(name) {
		return dialogue.BadRequest("invalid_form", "a part of the form has no valid name")
	}
	if enc := p.Header.Get("Content-Transfer-Encoding"); enc != "" && enc != "binary" && enc != "8bit" &&
		enc != "7bit" {
		return dialogue.BadRequest("invalid_form", "Content-Transfer-Encoding must be binary")
	}
	if err := f.limits.Names.CheckField(name); err != nil {
		return err
	}
	var content io.Reader = p
	if f.limits.Sum != nil {
		fmt.Fprintf(f.limits.Sum, "\x00%s\x00%s\x00", name, p.FileName())
		content = io.TeeReader(p, f.limits.Sum)
	}
	// A part of a field for files is a file even without a filename, because not every
	// client sends one.
	if limit := f.limits.File(name); limit > 0 {
		return f.file(p, content, name, limit)
	}
	if f.limits.Video != nil {
		if limit := f.limits.Video(name); limit > 0 {
			return f.videoOrText(p, content, name, limit)
		}
	}
	if p.FileName() != "" && !isDocument(p) {
		return dialogue.Invalid(name, "must be a text, not a file")
	}
	return f.text(content, name)
}

// isDocument reports whether a part with a filename is a text. Browsers and SDKs send a part with a
// media type as a file.
func isDocument(p *multipart.Part) bool {
	media, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// text reads a field. All fields together are bounded, because many short ones need as much memory as a long one.
func (f *formReader) text(p io.Reader, name string) error {
	b, err := io.ReadAll(io.LimitReader(p, maxText+1))
	if err != nil {
		return badForm(err)
	}
	if len(b) > maxText {
		return dialogue.Invalid(name, fmt.Sprintf("must not be longer than %d KiB", maxText>>10))
	}
	if f.texts += len(b); f.texts > maxTexts {
		return dialogue.Invalid(name, fmt.Sprintf("must not make the text fields longer than %d MiB together",
			maxTexts>>20))
	}
	if !utf8.Valid(b) {
		return dialogue.Invalid(name, "must be UTF-8")
	}
	f.form.Fields = append(f.form.Fields, FormField{name, string(b)})
	return nil
}

// file reads a picture, which is checked while it arrives.
func (f *formReader) file(p *multipart.Part, content io.Reader, name string, limit int64) error {
	file, err := picture.ReadFile(p.FileName(), content, limit, f.limits.Dir)
	if err != nil {
		return fileError(name, limit, err)
	}
	f.form.Files = append(f.form.Files, FormFile{name, file})
	return nil
}

// videoOrText reads a part as a video or as a text. If the header does not decide, the content does.
// Such a field takes a file, or a text that names a video which the gateway has.
func (f *formReader) videoOrText(p *multipart.Part, content io.Reader, name string, limit int64) error {
	const enough = 12
	r := bufio.NewReader(content)
	head, err := r.Peek(enough)
	if err != nil && err != io.EOF {
		return badForm(err)
	}
	if !mp4.Sniff(head) && (p.FileName() == "" || isDocument(p)) {
		return f.text(r, name)
	}
	file, err := mp4.ReadFile(p.FileName(), r, limit, f.limits.Dir)
	if err != nil {
		return fileError(name, limit, err)
	}
	f.form.Videos = append(f.form.Videos, FormVideo{name, file})
	return nil
}

// fileError returns the error for a picture or video that could not be read: a *dialogue.Error that names the field, or
// err as it is if it is one of the disk.
func fileError(field string, limit int64, err error) error {
	var e *dialogue.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, picture.ErrTooLarge):
		return dialogue.FileTooLarge(field, limit)
	case errors.Is(err, picture.ErrFormat):
		return dialogue.BadField(field, "invalid_image_format", "must be a PNG, JPEG or WebP picture, by its content")
	case errors.Is(err, picture.ErrCorrupt):
		return dialogue.BadField(field, "invalid_image", "is a damaged picture: its header cannot be read")
	case errors.Is(err, mp4.ErrFormat):
		return dialogue.BadField(field, "invalid_video_format", "must be an MP4 video, by its content")
	case errors.Is(err, mp4.ErrCorrupt):
		return dialogue.BadField(field, "invalid_video", "is a damaged video: its header does not tell size and length")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badForm(err)
	}
	return err // of the disk
}

// badForm returns the error for a body that is not a form.
func badForm(err error) error {
	var e *dialogue.Error
	if errors.As(err, &e) {
		return e // of upload
	}
	return dialogue.BadRequest("invalid_form", "the request body is not valid multipart/form-data")
}
