package chat

import (
	"cmp"
	"strings"

	"stagedoor/providers/dialogue"
)

// media writes one content part with media. It fails for media that the shape has no part for: a
// part that vanishes changes the question.
func (e *encoder) media(p dialogue.Part) error {
	m := p.Media
	switch {
	case m.Text != "":
		e.rep.LoseFileName(m)
		e.text(m.Text)
		return nil
	case m.FileID != "":
		return e.fileID(p)
	}
	if m.Kind != dialogue.File {
		e.rep.LoseFileName(m)
	}
	switch m.Kind {
	case dialogue.Image:
		e.image(m)
		return nil
	case dialogue.Audio:
		return e.audio(m)
	case dialogue.File:
		return e.file(m)
	}
	return dialogue.UnsupportedContent("the chosen model's provider does not take " + string(m.Kind) + " input")
}

// fileID writes a file by its id. Ids are valid only at the service where the file was uploaded.
func (e *encoder) fileID(p dialogue.Part) error {
	if p.Media.Kind != dialogue.File || p.Media.FileIDs != traits.FileIDs {
		return dialogue.UnsupportedContent("a file id cannot be used with the chosen model's provider")
	}
	e.Object().Key("type").String("file").Key("file").Object().Key("file_id").String(p.Media.FileID).End().End()
	return nil
}

// image writes an image by its address or as a data URL. Data without a type counts as PNG.
func (e *encoder) image(m *dialogue.Media) {
	e.Object().Key("type").String("image_url").Key("image_url").Object()
	if m.URL != "" {
		e.Key("url").String(m.URL)
	} else {
		e.Key("url").String(dataURL(m, "image/png"))
	}
	e.word("detail", m.Detail)
	e.End().End()
}

// audio writes audio, which the shape takes by value only.
func (e *encoder) audio(m *dialogue.Media) error {
	if m.Base64 == "" {
		return dialogue.UnsupportedContent("audio must be given by value for the chosen model's provider")
	}
	e.Object().Key("type").String("input_audio").Key("input_audio").Object()
	e.Key("data").String(m.Base64).Key("format").String(audioFormat(m.MIME))
	e.End().End()
	return nil
}

// audioFormat returns the shape's word for a media type.
func audioFormat(mime string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(mime), "audio/"), ";")
	switch kind {
	case "mpeg", "mpga", "x-mp3":
		return "mp3"
	case "x-wav", "wave", "vnd.wave", "":
		return "wav"
	}
	return kind
}

// file writes a document, which the shape takes by value only.
func (e *encoder) file(m *dialogue.Media) error {
	if m.Base64 == "" {
		// The gateway fetches nothing for its clients.
		return dialogue.UnsupportedContent("a document must be given by value for the chosen model's provider")
	}
	e.Object().Key("type").String("file").Key("file").Object()
	// The vendor refuses file_data without a name.
	e.Key("filename").String(m.FileName()).Key("file_data").String(dataURL(m, "application/pdf"))
	e.End().End()
	return nil
}

// dataURL returns the data URL of m. mime is the type for media that came without one.
func dataURL(m *dialogue.Media, mime string) string {
	return "data:" + cmp.Or(m.MIME, mime) + ";base64," + m.Base64
}
