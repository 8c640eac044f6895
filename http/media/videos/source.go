package videos

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/video"
	"stagedoor/providers/video/mp4"
	"stagedoor/state/work"
)

// source checks the video that an edit, extension or remix begins with and puts it into ask: the job that the body
// names, or the video that came with a form.
func (c *checker) source() error {
	v, ok := c.member(videoField)
	switch {
	case len(c.uploads) > 1, len(c.uploads) == 1 && ok:
		return dialogue.Invalid(videoField, "must be given once")
	case len(c.uploads) == 1:
		return c.uploaded(c.uploads[0].File)
	case !ok:
		return dialogue.Missing(videoField)
	case !v.IsObject():
		return dialogue.Unsupported(videoField, "must be an object with the id of a video made here, or an MP4 file "+
			"of a form")
	}
	id := v.Get("id")
	switch {
	case !id.Exists():
		return dialogue.Missing("video.id")
	case id.Type != gjson.String || id.Str == "" || len(id.Str) > maxID:
		return dialogue.Invalid("video.id", "must be the id of a video")
	}
	c.ask.Source, c.ask.SourceField = id.Str, "video.id"
	return nil
}

// uploaded checks an uploaded video and puts it into ask as the source. Where a job is the source, its provider makes
// the result. An upload has no provider, so the body must name the model, as for a new video. The result has the size
// of the upload.
func (c *checker) uploaded(f *mp4.File) error {
	if err := c.model(); err != nil {
		return err
	}
	size, known := video.Size{Width: f.Width, Height: f.Height}, sizesOf(c.ask.Model)
	switch {
	case !slices.Contains(known, size):
		return dialogue.Invalid(videoField, fmt.Sprintf("must be of one of the sizes %s, not %s", list(known), size))
	case f.Duration > video.MostSeconds*time.Second:
		return dialogue.Invalid(videoField, fmt.Sprintf("must not be longer than %d seconds", video.MostSeconds))
	}
	c.ask.Size, c.ask.Upload = size, f
	return nil
}

// fits returns an error if the extension of an upload would be too long as a whole. Ask.Fits checks that for the
// extension of a job.
func (c *checker) fits() error {
	if f := c.ask.Upload; f != nil {
		return checkLength(f.Seconds() + c.ask.Seconds)
	}
	return nil
}

// checkLength returns an error if a video of so many seconds would be too long.
func checkLength(seconds int) error {
	if seconds > video.MostSeconds {
		return dialogue.Invalid("seconds", fmt.Sprintf("the whole video must not be longer than %d seconds",
			video.MostSeconds))
	}
	return nil
}

// noPictures returns an error if pictures were sent. It is for operations that begin with a video.
func (c *checker) noPictures() error {
	if len(c.files) > 0 {
		return dialogue.Unsupported(c.files[0].Field, "is for new videos only")
	}
	return nil
}

// noUploads returns an error if videos were sent. It is for the operation that makes a new video.
func (c *checker) noUploads() error {
	if len(c.uploads) > 0 {
		return dialogue.Unsupported(c.uploads[0].Field, "is for edits and extensions only")
	}
	return nil
}

// nothingElse returns an error if the body of an extension has a picture or characters besides its source.
func (c *checker) nothingElse() error {
	for _, name := range []string{referenceField, "characters"} {
		if _, ok := c.member(name); ok {
			return dialogue.Unsupported(name, "is for new videos only")
		}
	}
	return nil
}

// Bounds of extensions.
const (
	maxExtensions = 6
)

// Fits returns an error for the client if source, the job that the request begins with, is not completed or cannot be
// extended any further.
func (a *Ask) Fits(source *work.Video) error {
	switch {
	case source.Phase != work.VideoCompleted:
		return dialogue.BadField(a.SourceField, "video_not_completed",
			"the video is not completed, it is "+source.Status())
	case a.Operation != video.Extend:
		return nil
	case source.Extensions >= maxExtensions:
		return dialogue.Invalid("video", fmt.Sprintf("was made longer %d times, which is the most there can be",
			maxExtensions))
	}
	return checkLength(int(source.Seconds) + a.Seconds)
}
