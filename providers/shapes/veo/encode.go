package veo

import (
	"net/http"
	"slices"

	"stagedoor/providers/jsonw"
	"stagedoor/providers/upstream"
	"stagedoor/providers/video"
	"stagedoor/providers/video/transfer"
)

// frame is what a size is called.
type frame struct{ aspect, resolution string }

// frames are the sizes there are.
var frames = map[video.Size]frame{
	{Width: 1280, Height: 720}:  {"16:9", "720p"},
	{Width: 720, Height: 1280}:  {"9:16", "720p"},
	{Width: 1920, Height: 1080}: {"16:9", "1080p"},
	{Width: 1080, Height: 1920}: {"9:16", "1080p"},
}

// lengths are the seconds that can be asked for, extension the only ones of a
// video made longer.
var lengths = []int{4, 6, 8}

const extension = 8

type parameters struct {
	frame
	seconds int
}

// parametersOf finds out how a job is asked for, or that it cannot be.
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
		return p, unsupported("characters", "the provider of this model knows none")
	case !transfer.ValidID(s.Model):
		return p, unsupported("model", "has a name that its provider cannot have")
	case s.Operation == video.Extend && s.Source == nil:
		return p, unsupported("video", "is what there is to extend")
	}
	return p, nil
}

// request writes a job down. uri is where the video to be extended is, if it does
// not go along.
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

// inline writes a file as a string: what is written so far goes to b before it.
func inline(w *jsonw.Writer, b *transfer.Body, f *video.File) {
	w.Raw([]byte(`"`))
	b.Text(string(w.Buf))
	b.Base64(f)
	w.Buf = append(w.Buf[:0], '"')
}
