package media

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/picture"
	"stagedoor/providers/video/mp4"
)

// Bounds of requests.
const (
	maxBody   = 64 << 20
	maxForm   = 104 << 20
	maxMemory = 8 << 20 // of a form; the rest goes to temporary files
	maxFiles  = 20
)

// input is the body of a request, which was sent as JSON or as a form.
type input struct {
	raw    []byte            // the JSON, nil for a form
	values map[string]string // fields; members of objects are named as forms name them, such as video[id]
	texts  []struct{ Name, Value string }
	files  []picture.Attachment
	video  *mp4.Header // of an uploaded video
	form   *multipart.Form
}

// readInput reads the body of a POST request. close must be called in any case.
func readInput(w http.ResponseWriter, r *http.Request) (in *input, err error) {
	in = &input{values: map[string]string{}}
	if r.Method != http.MethodPost {
		return in, nil
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); strings.HasPrefix(kind, "multipart/") {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		return in, in.readForm(r)
	}
	if in.raw, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		return in, unreadable(err)
	}
	if !fields.ValidWithin(in.raw, fields.MaxReplyDepth) || !gjson.ParseBytes(in.raw).IsObject() {
		return in, dialogue.BadRequest("invalid_json", "the body is not a JSON object")
	}
	gjson.ParseBytes(in.raw).ForEach(func(name, v gjson.Result) bool {
		if !v.IsObject() {
			v = gjson.Result{Type: gjson.JSON, Raw: `{"":` + v.Raw + `}`}
		}
		v.ForEach(func(member, v gjson.Result) bool {
			if v.Type != gjson.Null {
				// A member of the body itself has the empty name inside its wrapping, which leaves "[]" to be cut
				// off.
				in.values[strings.TrimSuffix(name.String()+"["+member.String()+"]", "[]")] = v.String()
			}
			return true
		})
		return true
	})
	return in, nil
}

// unreadable returns the error for a body that cannot be read.
func unreadable(err error) *dialogue.Error {
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return dialogue.Refusal(413, "", "the body is too large")
	}
	return dialogue.Refusal(400, "", "the body is incomplete or not a form")
}

// readForm reads a form with its files.
func (in *input) readForm(r *http.Request) error {
	if err := r.ParseMultipartForm(maxMemory); err != nil {
		return unreadable(err)
	}
	in.form = r.MultipartForm
	for name, values := range in.form.Value {
		in.values[name] = values[0]
		for _, v := range values {
			in.texts = append(in.texts, struct{ Name, Value string }{name, v})
		}
	}
	for name, headers := range in.form.File {
		for _, header := range headers {
			if len(in.files) == maxFiles {
				return dialogue.Invalid(name, "there are too many files")
			}
			content, err := header.Open()
			if err != nil {
				return err
			}
			if err := errors.Join(in.addFile(name, content, header.Size), content.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// addFile reads a picture or the header of a video.
func (in *input) addFile(name string, content multipart.File, size int64) error {
	if name == "video" {
		header, err := mp4.Inspect(content, size)
		if err != nil {
			return dialogue.Invalid(name, err.Error())
		}
		in.video = &header
		return nil
	}
	f, err := picture.ReadFile("", content, maxBody, "")
	if errors.Is(err, picture.ErrFormat) || errors.Is(err, picture.ErrCorrupt) {
		return dialogue.Invalid(name, err.Error())
	}
	if err != nil {
		return unreadable(err)
	}
	in.files = append(in.files, picture.Attachment{Name: name, File: f})
	return nil
}

// close removes the files. An error would leave only a temporary file of the system behind.
func (in *input) close() {
	for _, f := range in.files {
		_ = f.File.Close()
	}
	if in.form != nil {
		_ = in.form.RemoveAll()
	}
}
