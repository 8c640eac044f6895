package gemini

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/picture"
)

// Pictures describes upstreams of this shape as makers of pictures: generateContent with the
// modalities TEXT and IMAGE.
var Pictures = &picture.Shape{Name: Name, MakesPictures: true, Codec: pictures{}}

type pictures struct {
	shape
	picture.NonStreaming
}

// MaxImages implements picture.Codec. An answer has one picture, so several need several calls.
func (pictures) MaxImages(*picture.Request, string) int { return 1 }

// Encode implements picture.Codec. Pictures to be changed and pictures of a style are parts before the text that says
// what to do. Files are not copied into the body but read when it is sent. The error comes from
// picture.CheckConversational, because describing, upscaling, masks and transparent backgrounds are not supported.
func (pictures) Encode(
	_ context.Context, r *picture.Request, model string, rep *dialogue.Report,
) (*picture.Call, error) {
	if err := picture.CheckConversational(r); err != nil {
		return nil, err
	}
	body := new(picture.Document)
	w := &jsonw.Writer{}
	w.Object().Key("contents").Array().Object()
	w.Key("role").String("user")
	w.Key("parts").Array()
	for _, f := range slices.Concat(r.Sources, r.Styles) {
		inlineFile(w, body, f)
	}
	w.Object().Key("text").String(picture.ConversationPrompt(r)).End()
	w.End().End().End()
	w.Key("generationConfig").Object()
	w.Key("responseModalities").Array().String("TEXT").String("IMAGE").End()
	pictureFrame(w, r, rep)
	if r.Seed != nil {
		w.Key("seed").Int(*r.Seed)
	}
	w.End().End()
	body.JSON(w.Buf)
	picture.LoseUnsupported(r, rep)
	return &picture.Call{Path: modelPath(model) + ":" + generate, Header: make(http.Header), Body: body}, nil
}

// inlineFile moves what w has to body, and then adds the file in base64.
func inlineFile(w *jsonw.Writer, body *picture.Document, f *picture.File) {
	w.Object().Key("inlineData").Object()
	w.Key("mimeType").String(f.MediaType)
	w.Key("data").Raw([]byte(`"`))
	body.JSON(w.Buf)
	body.Base64(f)
	w.Buf = append(w.Buf[:0], '"')
	w.End().End()
}

// Edges in pixels beyond which a larger picture is asked for than the model's default.
const (
	over1K = 1536
	over2K = 2560
)

// pictureFrame writes imageConfig with the nearest ratio that the models take, and with the size only if it is a large
// one, because older models refuse the size. It writes nothing for a request without a size or a ratio.
func pictureFrame(w *jsonw.Writer, r *picture.Request, rep *dialogue.Report) {
	ratio := picture.NearestRatio(r, rep)
	if ratio == "" {
		return
	}
	w.Key("imageConfig").Object()
	w.Key("aspectRatio").String(ratio)
	switch edge := max(r.Size.Width, r.Size.Height); {
	case edge > over2K:
		w.Key("imageSize").String("4K")
	case edge > over1K:
		w.Key("imageSize").String("2K")
	}
	w.End()
}

// blockedPictures are the finish reasons with which moderation withholds a picture.
var blockedPictures = []string{"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION",
	"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"}

// Body implements picture.Codec. A reply without a picture is an error. If moderation blocked the prompt or the
// picture, it is the error of moderation with the stage that the images shape reports. Otherwise the upstream did not
// do what it was asked for, and the error says that.
func (pictures) Body(_ *picture.Request, body []byte) (*picture.Reply, error) {
	if bad := fields.CheckReply("reply", body); bad != nil {
		return nil, bad
	}
	v := gjson.Parse(unsafe.String(unsafe.SliceData(body), len(body))) // not written to any more
	if field(v, "error").Exists() {
		return nil, readError(0, v)
	}
	if field(field(v, "promptFeedback"), "blockReason").Exists() {
		return nil, moderated("input")
	}
	reply := &picture.Reply{Usage: pictureUsage(field(v, "usageMetadata"))}
	reason := ""
	each(field(v, "candidates"), func(_ int, c gjson.Result) bool {
		each(field(field(c, "content"), "parts"), func(_ int, p gjson.Result) bool {
			if i, ok := pictureOf(p); ok {
				reply.Images = append(reply.Images, i)
			}
			return true
		})
		reason = str(field(c, "finishReason"))
		return true
	})
	switch {
	case len(reply.Images) > 0:
		return reply, nil
	case slices.Contains(blockedPictures, reason):
		return nil, moderated("output")
	}
	return nil, dialogue.BadUpstream("a reply without a picture, for " + reason)
}

// pictureOf returns the picture of a part, whose base64 is not copied or decoded. It is false for a part without inline
// data of a type image/*, and for a part of a thought, because pictures in thoughts are drafts.
func pictureOf(p gjson.Result) (picture.Image, bool) {
	data := field(p, "inlineData")
	media, content := str(field(data, "mimeType")), field(data, "data")
	if !strings.HasPrefix(media, "image/") || content.Type != gjson.String || content.Str == "" ||
		field(p, "thought").Bool() {
		return picture.Image{}, false
	}
	return picture.Image{MediaType: media, Base64: unsafe.Slice(unsafe.StringData(content.Str), len(content.Str))}, true
}

// moderated returns the error for a picture that moderation withheld, with the details that the
// images shape has.
func moderated(stage string) *dialogue.Error {
	details, _ := json.Marshal(map[string]any{"moderation_stage": stage,
		"categories": []string{}}) // of such a map it cannot fail
	return dialogue.ModerationBlocked(details)
}

// pictureUsage returns the counts of text, image and cached tokens in usageMetadata, which have different prices. It is
// nil if none were reported. Tokens that the reply does not break down count as text.
func pictureUsage(v gjson.Result) *picture.Usage {
	if !v.IsObject() {
		return nil
	}
	c := noCounts
	c.read(v)
	total := c.usage()
	u := &picture.Usage{CachedInput: dialogue.CountOrZero(total.CacheRead),
		InputImage:  imageTokens(field(v, "promptTokensDetails")),
		OutputImage: imageTokens(field(v, "candidatesTokensDetails"))}
	u.InputText = max(dialogue.CountOrZero(total.InputTotal)-u.InputImage, 0)
	u.OutputText = max(dialogue.CountOrZero(total.OutputTotal)-u.OutputImage, 0)
	return u
}

// imageTokens returns the tokens of the modality IMAGE in a list of promptTokensDetails or candidatesTokensDetails.
func imageTokens(details gjson.Result) (tokens int64) {
	each(details, func(_ int, v gjson.Result) bool {
		if str(field(v, "modality")) == "IMAGE" {
			take(&tokens, field(v, "tokenCount"))
		}
		return true
	})
	return tokens
}
