package media

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
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
	maxBody  = 64 << 20
	maxVideo = 100 << 20
	maxForm  = maxVideo + 4<<20
	maxText  = 1 << 20
	maxFiles = 20
)

// input is a request's fields, however they were sent. Members of objects have
// the names that forms give them: input_reference[image_url].
type input struct {
	values map[string]string
	files  map[string][]*picture.File
	video  *mp4.Header // of an uploaded video; nobody looks at the rest of it
}

// readInput reads a body of JSON or of a form. close must be called in any case.
func readInput(w http.ResponseWriter, r *http.Request) (in *input, err error) {
	in = &input{values: map[string]string{}, files: map[string][]*picture.File{}}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); strings.HasPrefix(kind, "multipart/") {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		return in, in.readForm(r)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	body, err := readJSON(r)
	if err == nil {
		in.addObject("", gjson.ParseBytes(body), 0)
	}
	return in, err
}

// readJSON reads a body that must be one JSON object.
func readJSON(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, unreadable(err)
	}
	if !fields.ValidWithin(body, fields.MaxReplyDepth) || !gjson.ParseBytes(body).IsObject() {
		return nil, &dialogue.Error{Status: 400, Type: dialogue.TypeInvalidRequest, Code: "invalid_json", Message: "the body is not a JSON object"}
	}
	return body, nil
}

func unreadable(err error) *dialogue.Error {
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return &dialogue.Error{Status: 413, Type: dialogue.TypeTooLarge, Message: "the body is too large"}
	}
	return &dialogue.Error{Status: 400, Type: dialogue.TypeInvalidRequest, Message: "the body is incomplete or not a form"}
}

// addObject adds the members of an object, and those of objects in it.
func (in *input) addObject(prefix string, object gjson.Result, depth int) {
	object.ForEach(func(key, v gjson.Result) bool {
		name := key.String()
		if prefix != "" {
			name = prefix + "[" + name + "]"
		}
		switch {
		case v.IsObject() && depth == 0 && prefix == "":
			in.addObject(name, v, depth+1)
		case v.Type != gjson.Null:
			in.values[name] = v.String()
		}
		return true
	})
}

func (in *input) readForm(r *http.Request) error {
	form, err := r.MultipartReader()
	if err != nil {
		return unreadable(err)
	}
	for n := 0; ; {
		part, err := form.NextPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		name := strings.TrimSuffix(part.FormName(), "[]")
		if part.FileName() == "" {
			text, err := io.ReadAll(io.LimitReader(part, maxText))
			if err != nil {
				return unreadable(err)
			}
			in.values[name] = string(text)
			continue
		}
		if n++; n > maxFiles {
			return dialogue.Invalid(name, "there are too many files")
		}
		add := in.addFile
		if name == "video" {
			add = in.addVideo
		}
		if err := add(name, part); err != nil {
			return err
		}
	}
}

func (in *input) addVideo(name string, content io.Reader) error {
	f, err := mp4.ReadFile("", content, maxVideo, "")
	if errors.Is(err, mp4.ErrFormat) || errors.Is(err, mp4.ErrCorrupt) {
		return dialogue.Invalid(name, err.Error())
	}
	if err != nil {
		return unreadable(err)
	}
	in.video = &f.Header
	return f.Close()
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

// addData adds a picture that was sent as text: base64, with or without the head
// of a data URL. Addresses are not followed.
func (in *input) addData(name, text string) error {
	if _, data, found := strings.Cut(text, ";base64,"); found {
		text = data
	}
	return in.addFile(name, base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
}

// close gives the files back.
func (in *input) close() {
	for _, files := range in.files {
		for _, f := range files {
			// They have no name any more; there is nothing that could be left behind.
			_ = f.Close()
		}
	}
}

// first is the first of several names that was given.
func (in *input) first(names ...string) string {
	for _, name := range names {
		if v := in.values[name]; v != "" {
			return v
		}
	}
	return ""
}

// number reads an integer between two bounds; ok is false if it was not given.
func (in *input) number(name string, least, most int64) (n int64, ok bool, err error) {
	text, ok := in.values[name]
	if !ok {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, false, dialogue.Invalid(name, "must be an integer between "+strconv.FormatInt(least, 10)+" and "+strconv.FormatInt(most, 10))
	}
	return n, true, nil
}

// optional is number for fields that are pointers in a picture.Request.
func (in *input) optional(name string, least, most int64) (*int, error) {
	n, ok, err := in.number(name, least, most)
	if !ok {
		return nil, err
	}
	v := int(n)
	return &v, nil
}
