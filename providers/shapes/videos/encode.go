package videos

import (
	"net/http"
	"strconv"

	"stagedoor/providers/jsonw"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/providers/video/transfer"
)

// field is a field of a request with a text.
type field struct{ name, value string }

// encode returns the request that creates a job: a form if it has a file, else JSON.
func encode(s *video.Spec, open video.Opener) (upstream.Request, error) {
	switch s.Operation {
	case video.Create:
		return create(s, open), nil
	case video.Remix, video.Edit, video.Extend:
		return derive(s, open)
	}
	return upstream.Request{}, unsupported("model", "the provider of this model cannot "+string(s.Operation)+" videos")
}

// create returns the request for a new video. A reference picture is a file of a form, except
// beside characters, for which forms have no field.
func create(s *video.Spec, open video.Opener) upstream.Request {
	fields := []field{
		{"model", s.Model},
		{"prompt", s.Prompt},
		{"seconds", strconv.Itoa(s.Seconds)},
		{"size", s.Size.String()},
	}
	if s.Reference != nil && len(s.Characters) == 0 {
		return form(root, fields, "input_reference", s.Reference, open)
	}
	w := object(fields)
	if len(s.Characters) > 0 {
		w.Key("characters").Array()
		for _, id := range s.Characters {
			w.Object().Key("id").String(id).End()
		}
		w.End()
	}
	if s.Reference == nil {
		w.End()
		return document(root, w)
	}
	// Forms have no field for characters, so the picture is sent as a data URL.
	w.Key("input_reference").Object().Key("image_url").Raw([]byte(`"data:` + s.Reference.Type + `;base64,`))
	b := &transfer.Body{Files: open}
	b.Text(string(w.Buf))
	b.Base64(s.Reference)
	b.Text(`"}}`)
	return request(root, "application/json", b)
}

// derive returns the request for a job that starts from another video.
func derive(s *video.Spec, open video.Opener) (upstream.Request, error) {
	if s.Source == nil || s.Source.File == nil && !isJobID(s.Source.ID) {
		return upstream.Request{}, unsupported("video", "is unknown to the provider of this model")
	}
	fields := []field{{"prompt", s.Prompt}}
	path := root + "/edits"
	switch s.Operation {
	case video.Extend:
		path = root + "/extensions"
		fields = append(fields, field{"seconds", strconv.Itoa(s.Added)})
	case video.Remix:
		if s.Source.File != nil {
			return upstream.Request{}, unsupported("video", "only a video of this gateway can be remixed")
		}
		w := object(fields)
		w.End()
		return document(root+"/"+s.Source.ID+"/remix", w), nil
	}
	if s.Source.File != nil {
		return form(path, fields, "video", s.Source.File, open), nil
	}
	w := object(fields)
	w.Key("video").Object().Key("id").String(s.Source.ID).End().End()
	return document(path, w), nil
}

// object opens a JSON object with fields.
func object(fields []field) *jsonw.Writer {
	w := &jsonw.Writer{}
	w.Object()
	for _, f := range fields {
		w.Key(f.name).String(f.value)
	}
	return w
}

// document returns a request with a JSON body.
func document(path string, w *jsonw.Writer) upstream.Request {
	b := &transfer.Body{}
	b.Text(string(w.Buf))
	return request(path, "application/json", b)
}

// form returns a request with a multipart form and one file, which is read when the form is sent.
func form(path string, fields []field, name string, file *video.File, open video.Opener) upstream.Request {
	f := transfer.NewForm(open)
	for _, field := range fields {
		f.Field(field.name, field.value)
	}
	f.Upload(name, file)
	f.End()
	return request(path, f.ContentType(), &f.Body)
}

// request returns a POST with a body of this media type.
func request(path, mediaType string, b *transfer.Body) upstream.Request {
	return upstream.Request{
		Method: http.MethodPost,
		Path:   path,
		Header: http.Header{"Content-Type": {mediaType}},
		Body:   b.Open,
		Length: b.Len(),
	}
}
