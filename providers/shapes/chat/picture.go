package chat

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/picture"
)

// Pictures describes upstreams of this shape as makers of pictures: models that answer with one
// when modalities asks for it. The vendor has no such models. OpenRouter and others return the
// picture in images beside the content of the message, or among its parts.
var Pictures = &picture.Shape{Name: Name, Codec: pictures{}}

type pictures struct {
	shape
	picture.NonStreaming
}

// MaxImages implements picture.Codec. An answer has one picture, so several need several calls.
func (pictures) MaxImages(*picture.Request, string) int { return 1 }

// Encode implements picture.Codec. A picture to be changed is a part before the text that says how.
// Files stay where they are: the body is a sequence of JSON and of files in base64, which is never
// held whole.
func (pictures) Encode(
	_ context.Context, r *picture.Request, model string, rep *dialogue.Report,
) (*picture.Call, error) {
	if err := picture.CheckConversational(r); err != nil {
		return nil, err
	}
	body := new(picture.Document)
	w := &jsonw.Writer{}
	w.Object().Key("model").String(model)
	w.Key("modalities").Array().String("image").String("text").End()
	w.Key("messages").Array().Object().Key("role").String("user").Key("content").Array()
	for _, f := range slices.Concat(r.Sources, r.Styles) {
		pictureFile(w, body, f)
	}
	w.Object().Key("type").String("text").Key("text").String(picture.ConversationPrompt(r)).End()
	w.End().End().End()
	if ratio := picture.NearestRatio(r, rep); ratio != "" {
		w.Key("image_config").Object().Key("aspect_ratio").String(ratio).End()
	}
	if r.Seed != nil {
		w.Key("seed").Int(*r.Seed)
	}
	w.End()
	body.JSON(w.Buf)
	picture.LoseUnsupported(r, rep)
	return &picture.Call{Path: path, Header: make(http.Header), Body: body}, nil
}

// pictureFile moves what w has to body, and then adds the file as a data URL.
func pictureFile(w *jsonw.Writer, body *picture.Document, f *picture.File) {
	w.Object().Key("type").String("image_url").Key("image_url").Object()
	w.Key("url").Raw([]byte(`"data:` + f.MediaType + `;base64,`))
	body.JSON(w.Buf)
	body.Base64(f)
	w.Buf = append(w.Buf[:0], '"')
	w.End().End()
}

// Body implements picture.Codec. A reply in words only is an error, and if it is a refusal, that of
// moderation.
func (pictures) Body(_ *picture.Request, body []byte) (*picture.Reply, error) {
	if bad := fields.CheckReply("reply", body); bad != nil {
		return nil, bad
	}
	v := gjson.ParseBytes(body)
	if e := v.Get("error"); e.IsObject() {
		return nil, chunks.DecodeFailure(v)
	}
	reply := &picture.Reply{Usage: pictureUsage(v.Get("usage"))}
	choice := v.Get("choices.0")
	for _, list := range []string{"message.images", "message.content"} {
		chunks.OnlyArray(choice.Get(list)).ForEach(func(_, part gjson.Result) bool {
			if address := part.Get("image_url.url"); address.Type == gjson.String && address.Str != "" {
				reply.Images = append(reply.Images, pictureAt(address.Str))
			}
			return true
		})
	}
	switch {
	case len(reply.Images) > 0:
		return reply, nil
	case choice.Get("finish_reason").Str == "content_filter", choice.Get("message.refusal").Str != "":
		return nil, dialogue.ModerationBlocked(nil)
	}
	return nil, dialogue.BadUpstream("a reply without a picture")
}

// pictureAt returns the picture inside a data URL, or the address of one that must be fetched.
func pictureAt(address string) picture.Image {
	head, content, found := strings.Cut(address, ";base64,")
	media, isData := strings.CutPrefix(head, "data:")
	if !found || !isData {
		return picture.Image{URL: address}
	}
	return picture.Image{MediaType: media, Base64: []byte(content)}
}

// pictureUsage returns the token counts of a reply by kind, because pictures have their own price.
// It is nil if the upstream reported none.
func pictureUsage(v gjson.Result) *picture.Usage {
	if !v.IsObject() {
		return nil
	}
	total := chunks.Usage(v)
	u := &picture.Usage{CachedInput: dialogue.CountOrZero(total.CacheRead),
		InputImage:  max(v.Get("prompt_tokens_details.image_tokens").Int(), 0),
		OutputImage: max(v.Get("completion_tokens_details.image_tokens").Int(), 0)}
	u.InputText = max(dialogue.CountOrZero(total.InputTotal)-u.InputImage, 0)
	u.OutputText = max(dialogue.CountOrZero(total.OutputTotal)-u.OutputImage, 0)
	return u
}
