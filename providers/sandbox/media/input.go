package media

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
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

// input holds the fields of a request, whether it was sent as JSON or as a form. Members of objects have the names that
// forms give them, such as input_reference[image_url].
type input struct {
	values map[string]string
	files  map[string][]*picture.File
	video  *mp4.Header  // of an uploaded video
	body   gjson.Result // of a JSON request
	form   *multipart.Form
}

// readInput reads the body of a POST request. close must be called in any case.
func readInput(w http.ResponseWriter, r *http.Request) (in *input, err error) {
	in = &input{values: map[string]string{}, files: map[string][]*picture.File{}}
	if r.Method != http.MethodPost {
		return in, nil
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); strings.HasPrefix(kind, "multipart/") {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		return in, in.readForm(r)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return in, unreadable(err)
	}
	if in.body = gjson.ParseBytes(body); !fields.ValidWithin(body, fields.MaxReplyDepth) || !in.body.IsObject() {
		return in, &dialogue.Error{
			Status:  400,
			Type:    dialogue.TypeInvalidRequest,
			Code:    "invalid_json",
			Message: "the body is not a JSON object",
		}
	}
	in.addObject(in.body)
	return in, nil
}

func unreadable(err error) *dialogue.Error {
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return &dialogue.Error{Status: 413, Type: dialogue.TypeTooLarge, Message: "the body is too large"}
	}
	return &dialogue.Error{
		Status:  400,
		Type:    dialogue.TypeInvalidRequest,
		Message: "the body is incomplete or not a form",
	}
}

// addObject adds the members of an object, and those of objects in it under names as forms
// have them.
func (in *input) addObject(members gjson.Result) {
	members.ForEach(func(key, v gjson.Result) bool {
		if !v.IsObject() {
			in.addValue(key.String(), v)
			return true
		}
		v.ForEach(func(inner, v gjson.Result) bool {
			in.addValue(key.String()+"["+inner.String()+"]", v)
			return true
		})
		return true
	})
}

func (in *input) addValue(name string, v gjson.Result) {
	if v.Type != gjson.Null {
		in.values[name] = v.String()
	}
}

func (in *input) readForm(r *http.Request) error {
	if err := r.ParseMultipartForm(maxMemory); err != nil {
		return unreadable(err)
	}
	in.form = r.MultipartForm
	for name, values := range in.form.Value {
		in.values[strings.TrimSuffix(name, "[]")] = values[0]
	}
	count := 0
	for name, headers := range in.form.File {
		name = strings.TrimSuffix(name, "[]")
		for _, header := range headers {
			if count++; count > maxFiles {
				return dialogue.Invalid(name, "there are too many files")
			}
			content, err := header.Open()
			if err != nil {
				return err
			}
			if name == "video" {
				err = in.addVideo(content, header.Size)
			} else {
				err = in.addFile(name, content)
			}
			if err := errors.Join(err, content.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *input) addVideo(content io.ReaderAt, size int64) error {
	header, err := mp4.Inspect(content, size)
	if err != nil {
		return dialogue.Invalid("video", err.Error())
	}
	in.video = &header
	return nil
}

func (in *input) addFile(name string, content io.Reader) error {
	f, err := picture.ReadFile("", content, maxBody, "")
	if errors.Is(err, picture.ErrFormat) || errors.Is(err, picture.ErrCorrupt) {
		return dialogue.Invalid(name, err.Error())
	}
	if err != nil {
		return unreadable(err)
	}
	in.files[name] = append(in.files[name], f)
	return nil
}

// addData adds a picture in base64, with or without the head of a data URL. Addresses are not followed.
func (in *input) addData(name, text string) error {
	if _, data, found := strings.Cut(text, ";base64,"); found {
		text = data
	}
	return in.addFile(name, base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
}

// close removes the files. An error would leave only a temporary file of the system behind.
func (in *input) close() {
	for _, files := range in.files {
		for _, f := range files {
			_ = f.Close()
		}
	}
	if in.form != nil {
		_ = in.form.RemoveAll()
	}
}

// first returns the first value that was given under one of several names.
func (in *input) first(names ...string) string {
	for _, name := range names {
		if v := in.values[name]; v != "" {
			return v
		}
	}
	return ""
}

// number reads an optional integer between two bounds; given is false if it is absent.
func (in *input) number(name string, least, most int64) (n int64, given bool, err error) {
	text, given := in.values[name]
	if !given {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, false, dialogue.Invalid(
			name,
			"must be an integer between "+strconv.FormatInt(least, 10)+" and "+strconv.FormatInt(most, 10),
		)
	}
	return n, true, nil
}

// optional is number for fields that are pointers in a picture.Request.
func (in *input) optional(name string, least, most int64) (*int, error) {
	n, given, err := in.number(name, least, most)
	if !given {
		return nil, err
	}
	v := int(n)
	return &v, nil
}
