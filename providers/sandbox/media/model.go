package media

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/picture"
)

// callModel takes the calls of the third shape that make pictures or videos. The
// others are text, and go on with the body they came with.
func (s *server) callModel(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return unreadable(err)
	}
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	good := fields.ValidLenient(body)
	switch {
	case good && method == "predictLongRunning":
		return s.predictLongRunning(w, r, model, body)
	case good && (method == "generateContent" || method == "streamGenerateContent") && wantsPicture(model, body):
		return s.generateContent(w, r, model, method == "streamGenerateContent", body)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.next.ServeHTTP(w, r)
	return nil
}

// wantsPicture reports whether pictures are asked for: in so many words, or by a
// model that makes nothing else.
func wantsPicture(model string, body []byte) bool {
	modalities := gjson.GetBytes(body, "generationConfig.responseModalities")
	if !modalities.Exists() {
		return strings.Contains(model, "image")
	}
	return slices.ContainsFunc(modalities.Array(), func(v gjson.Result) bool { return strings.EqualFold(v.String(), "IMAGE") })
}

// generateContent answers with a picture, for prompts with pictures one that is
// made from them.
func (s *server) generateContent(w http.ResponseWriter, r *http.Request, model string, stream bool, body []byte) error {
	in := &input{files: map[string][]*picture.File{}}
	defer in.close()
	req, err := contentRequest(in, model, body)
	if err != nil {
		return err
	}
	var reply *picture.Reply
	err = s.model.Picture(r.Context(), req, r.Header, func(ev *picture.Event) error {
		reply = ev.Done
		return nil
	})
	blocked := new(dialogue.Error)
	if errors.As(err, &blocked) && blocked.Code == "moderation_blocked" {
		reply, err = nil, nil
	}
	if err != nil {
		return err
	}
	data := contentReply(model, s.model.Env.ID(), reply)
	switch {
	case !stream:
		return send(w, http.StatusOK, data)
	case r.URL.Query().Get("alt") == "sse":
		w.Header().Set("Content-Type", "text/event-stream")
		data = append(append([]byte("data: "), data...), "\r\n\r\n"...)
	default:
		w.Header().Set("Content-Type", "application/json")
		data = append(append([]byte{'['}, data...), ']')
	}
	_, err = w.Write(data)
	return gone(err)
}

// contentRequest reads the last turn of the user and the picture's size.
func contentRequest(in *input, model string, body []byte) (*picture.Request, error) {
	req := &picture.Request{Inbound: dialogue.Gemini, Operation: picture.Generate, Model: model, N: 1, Inline: true}
	turns := gjson.GetBytes(body, "contents").Array()
	if len(turns) == 0 {
		return nil, dialogue.Missing("contents")
	}
	for _, part := range turns[len(turns)-1].Get("parts").Array() {
		req.Prompt = strings.TrimPrefix(req.Prompt+"\n"+part.Get("text").String(), "\n")
		if data := part.Get("inlineData.data"); data.Exists() {
			if err := in.addData("contents", data.String()); err != nil {
				return nil, err
			}
		}
	}
	req.Prompt = strings.TrimSpace(req.Prompt)
	if req.Sources = in.files["contents"]; len(req.Sources) > 0 {
		req.Operation = picture.Edit
	}
	if ratio := gjson.GetBytes(body, "generationConfig.imageConfig.aspectRatio").String(); ratio != "" {
		var ok bool
		if req.Aspect, ok = picture.ParseAspect(strings.Replace(ratio, ":", "x", 1)); !ok {
			return nil, dialogue.Invalid("generationConfig.imageConfig.aspectRatio", "must be WIDTH:HEIGHT")
		}
	}
	return req, nil
}

// contentReply is a response with a picture in it; nil is one that moderation
// did not let through.
func contentReply(model, id string, reply *picture.Reply) []byte {
	w := jsonw.Writer{}
	w.Object()
	if reply == nil {
		w.Key("promptFeedback").Object().Key("blockReason").String("PROHIBITED_CONTENT").End().
			Key("usageMetadata").Object().Key("promptTokenCount").Int(0).Key("totalTokenCount").Int(0).End()
	} else {
		candidate(&w, &reply.Images[0])
		if u := reply.Usage; u != nil {
			w.Key("usageMetadata").Object().Key("promptTokenCount").Int(u.Input()).Key("candidatesTokenCount").Int(u.Output()).
				Key("totalTokenCount").Int(u.Input() + u.Output()).Key("candidatesTokensDetails").Array().Object().
				Key("modality").String("IMAGE").Key("tokenCount").Int(u.Output()).End().End().End()
		}
	}
	w.Key("modelVersion").String(model).Key("responseId").String(id).End()
	return w.Buf
}

func candidate(w *jsonw.Writer, img *picture.Image) {
	w.Key("candidates").Array().Object().Key("index").Int(0)
	if img.Unsafe {
		w.Key("finishReason").String("IMAGE_SAFETY").End().End()
		return
	}
	w.Key("content").Object().Key("role").String("model").Key("parts").Array()
	w.Object().Key("text").String("Here is the picture.").End()
	w.Object().Key("inlineData").Object().Key("mimeType").String(img.MediaType).
		Key("data").Raw(append(base64.StdEncoding.AppendEncode([]byte{'"'}, img.Data), '"')).End().End()
	w.End().End().Key("finishReason").String("STOP").End().End()
}
