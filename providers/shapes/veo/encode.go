package veo

import (
	"net/http"
	"slices"

	"stagedoor/providers/jsonw"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/providers/video/transfer"
)

// frame is the vendor's name of a size.
type frame struct{ aspect, resolution string }

// frames lists the sizes that the models make.
var frames = map[video.Size]frame{
	{Width: 1280, Height: 720}:  {"16:9", "720p"},
	{Width: 720, Height: 1280}:  {"9:16", "720p"},
	{Width: 1920, Height: 1080}: {"16:9", "1080p"},
	{Width: 1080, Height: 1920}: {"9:16", "1080p"},
}

// lengths lists the seconds of a new video. extension is the only length by which a video can be
// extended.
var lengths = []int{4, 6, 8}

const extension = 8

// parameters has the parameters of a job in the vendor's words.
type parameters struct {
	frame
	seconds int
}

// parametersOf returns the vendor's parameters for a job, or an error for a job that Veo cannot
// make.
func parametersOf(s *video.Spec) (p parameters, err error) {
	known := false
	p.frame, known = frames[s.Size]
	p.seconds = s.Seconds
	switch {
	case s.Operation == video.Extend:
		p.seconds = s.Added
	case s.Operation != video.Create:
		return p, unsupported("model", "the provider of this model cannot "+string(s.Operation)+" videos")
	}
	switch {
	case !known:
		return p, unsupported("size", "the provider of this model makes 1280x720, 720x1280, 1920x1080 and 1080x1920")
	case s.Operation == video.Extend && p.seconds != extension:
		return p, unsupported("seconds", "the provider of this model extends videos by 8 seconds")
	case !slices.Contains(lengths, p.seconds):
		return p, unsupported("seconds", "the provider of this model makes videos of 4, 6 or 8 seconds")
	case len(s.Characters) > 0:
		return p, unsupported("characters", "the provider of this model has no characters")
	case !transfer.ValidID(s.Model):
		return p, unsupported("model", "is not a valid name at its provider")
	case s.Operation == video.Extend && s.Source == nil:
		return p, unsupported("video", "is required to extend a video")
	}
	return p, nil
}

// request returns the request that creates a job. uri is the address of the video to extend, or ""
// if the video is in the request.
func request(s *video.Spec, p parameters, uri string, open video.Opener) upstream.Request {
	b := &transfer.Body{Files: open}
	w := &jsonw.Writer{}
	w.Object().Key("instances").Array().Object().Key("prompt").String(s.Prompt)
	if s.Reference != nil {
		w.Key("image").Object().Key("mimeType").String(s.Reference.Type).Key("bytesBase64Encoded")
		inline(w, b, s.Reference)
		w.End()
	}
	switch {
	case uri != "":
		w.Key("video").Object().Key("uri").String(uri).End()
	case s.Source != nil && s.Source.File != nil:
		w.Key("video").Object().Key("encoding").String(s.Source.File.Type).Key("encodedVideo")
		inline(w, b, s.Source.File)
		w.End()
	}
	w.End().End()
	w.Key("parameters").Object().Key("aspectRatio").String(p.aspect).Key("resolution").String(p.resolution).
		Key("durationSeconds").Int(int64(p.seconds)).End()
	w.End()
	b.Text(string(w.Buf))
	return upstream.Request{
		Method: http.MethodPost,
		Path:   modelPath(s.Model),
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   b.Open,
		Length: b.Len(),
	}
}

// inline writes a file as a JSON string. It moves the text in w to b first, so that the file follows
// it.
func inline(w *jsonw.Writer, b *transfer.Body, f *video.File) {
	w.Raw([]byte(`"`))
	b.Text(string(w.Buf))
	b.Base64(f)
	w.Buf = append(w.Buf[:0], '"')
}
