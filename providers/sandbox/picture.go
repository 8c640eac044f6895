package sandbox

import (
	"context"
	"errors"
	"hash/fnv"
	"image"
	"net/http"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/sandbox/draw"
	"stagedoor/providers/tokens"
)

// imagegen is the inbound shape of the image vendor's routes. Its clients are
// told the prompt of every picture, and of no tokens.
const imagegen dialogue.Shape = "imagegen"

// easels bounds how many pictures are worked on at a time in this process: one
// takes up to a few times 4*draw.MaxPixels bytes.
var easels = make(chan struct{}, 4)

// partialTokens is the pace of partial pictures: each takes as long as so many
// tokens of text.
const partialTokens = 12

const mostPictures = 10

// Picture is a picture.Simulator. Faults are ordered as for text; pictures on
// the way and finished ones count as one token each.
func (m *Model) Picture(ctx context.Context, r *picture.Request, header http.Header, emit func(*picture.Event) error) error {
	script, err := ParseScript(m.Base, header.Get(Header), r.Prompt)
	if err != nil {
		return err
	}
	p := &painter{player: player{ctx: ctx, script: script, env: m.Env}, req: r, emit: emit}
	defer p.stop()
	if err := p.wait(m.Env.Now().Add(script.Delay)); err != nil {
		return err
	}
	switch {
	case script.Status != 0:
		return script.refusal()
	case script.Block:
		return blocked(r.Inbound)
	case r.Operation == picture.Describe:
		return p.describe()
	}
	return p.paint()
}

// blocked is what moderation says (wire/images.md 5, wire/imagegen.md 7).
func blocked(in dialogue.Shape) *dialogue.Error {
	if in == imagegen {
		return &dialogue.Error{Status: 422, Type: dialogue.TypeInvalidRequest, Code: "content_policy_violation",
			Message: "the sandbox's moderation rejects the prompt as it was told to"}
	}
	return &dialogue.Error{Status: 400, Type: "image_generation_user_error", Code: "moderation_blocked",
		Message: "the sandbox's moderation blocks the prompt as it was told to"}
}

// painter makes the pictures of one request.
type painter struct {
	player
	req  *picture.Request
	emit func(*picture.Event) error
	told int // pictures shown, unfinished ones included
}

// open reads one of the client's files.
func (p *painter) open(f *picture.File) (*image.NRGBA, error) {
	m, err := draw.Decode(f.Reader())
	if err != nil {
		return nil, dialogue.Invalid("image", err.Error())
	}
	return m, nil
}

func (p *painter) source() (*image.NRGBA, error) {
	if len(p.req.Sources) == 0 {
		return nil, dialogue.Missing("image")
	}
	return p.open(p.req.Sources[0])
}

// atEasel does work when there is room for it.
func (p *painter) atEasel(work func() error) error {
	select {
	case easels <- struct{}{}:
		defer func() { <-easels }()
		return work()
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

func (p *painter) describe() error {
	reply := &picture.Reply{Created: p.env.Now()}
	err := p.atEasel(func() error {
		m, err := p.source()
		if err == nil {
			reply.Descriptions = []string{draw.Describe(m)}
		}
		return err
	})
	if err == nil {
		err = p.finish(reply)
	}
	return err
}

func (p *painter) paint() error {
	r := p.req
	reply := &picture.Reply{Created: p.env.Now(), OutputFormat: string(p.format()), Quality: r.Quality, Background: r.Background}
	for i := range min(max(r.N, 1), mostPictures) {
		made, err := p.one(i)
		if err != nil {
			return err
		}
		reply.Images = append(reply.Images, *made)
	}
	first := &reply.Images[0]
	reply.Size = picture.Size{Width: first.Width, Height: first.Height}.String()
	if reply.Background == "" || reply.Background == "auto" {
		reply.Background = "opaque"
	}
	if r.Inbound != imagegen {
		reply.Usage = p.usage(reply)
	}
	return p.finish(reply)
}

// finish ends the reply, or breaks it if that was ordered and has not happened.
func (p *painter) finish(reply *picture.Reply) error {
	if p.script.Fault != NoFault {
		return p.failure()
	}
	return p.emit(&picture.Event{Done: reply})
}

// one makes a picture and shows how it comes about.
func (p *painter) one(number int) (*picture.Image, error) {
	seed := p.seed(number)
	img := &picture.Image{MediaType: p.format().MediaType(), Seed: &seed, Prompt: p.finalPrompt(), StyleType: p.req.StyleType, Unsafe: p.script.Unsafe}
	var partials [][]byte
	err := p.atEasel(func() error {
		m, err := p.draw(seed)
		if err != nil {
			return asInvalid(err)
		}
		img.Width, img.Height = m.Rect.Dx(), m.Rect.Dy()
		if p.req.Operation == picture.Upscale {
			img.Upscaled = picture.Size{Width: img.Width, Height: img.Height}
			img.Width, img.Height = p.req.Sources[0].Width, p.req.Sources[0].Height
		}
		if partials, err = p.partials(m); err == nil {
			img.Data, err = p.encode(m)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if img.Unsafe {
		img.Data, img.MediaType = nil, ""
	}
	return img, p.show(partials, img)
}

func (p *painter) partials(m *image.NRGBA) ([][]byte, error) {
	n := p.req.Partials
	if !p.req.Stream {
		n = 0
	}
	out := make([][]byte, n)
	for i := range out {
		var err error
		if out[i], err = p.encode(draw.Coarse(m, i, n)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// show sends the unfinished pictures, one after the other.
func (p *painter) show(partials [][]byte, like *picture.Image) error {
	for i, data := range partials {
		if p.script.Pace != MaxPace {
			if err := p.wait(p.env.Now().Add(partialTokens * p.step())); err != nil {
				return err
			}
		}
		if p.script.Fault != NoFault && p.told >= p.script.After {
			return p.failure()
		}
		p.told++
		partial := &picture.Partial{Index: i, Image: picture.Image{Data: data, MediaType: like.MediaType, Width: like.Width, Height: like.Height}}
		if err := p.emit(&picture.Event{Partial: partial}); err != nil {
			return err
		}
	}
	return nil
}

func (p *painter) encode(m *image.NRGBA) ([]byte, error) {
	quality := 100
	if p.req.Compression != nil {
		quality = *p.req.Compression
	}
	return draw.Encode(m, p.format(), quality)
}

func (p *painter) format() draw.Format {
	switch f := draw.Format(p.req.OutputFormat); f {
	case draw.JPEG, draw.WebP:
		return f
	}
	return draw.PNG
}

// seed is the client's, the same for all pictures as the vendor has it, or made
// from the request.
func (p *painter) seed(number int) int64 {
	if p.req.Seed != nil {
		return *p.req.Seed
	}
	h := fnv.New32a()
	for _, s := range []string{p.req.Model, "\x00", p.req.Prompt, "\x00", p.req.NegativePrompt, "\x00", p.req.StyleType, p.req.Style} {
		h.Write([]byte(s))
	}
	return int64(h.Sum32()>>1+uint32(number)) & 0x7fffffff
}

// finalPrompt is told where vendors tell it: by the image vendor's models, with
// magic when that is asked for, and by those models that have styles.
func (p *painter) finalPrompt() string {
	switch r := p.req; {
	case r.Inbound == imagegen && r.MagicPrompt == "ON":
		return r.Prompt + ", drawn with great care by a sandbox"
	case r.Inbound == imagegen, strings.Contains(r.Model, "legacy"), strings.Contains(r.Model, "dall-e"):
		return r.Prompt
	}
	return ""
}

// draw does what the operation says.
func (p *painter) draw(seed int64) (*image.NRGBA, error) {
	r := p.req
	caption, _, _ := strings.Cut(r.Prompt, "[sandbox:")
	s := draw.Spec{Prompt: r.Prompt + "\x00" + r.StyleType + r.Style, Seed: seed, Caption: caption, Transparent: r.Background == "transparent"}
	if r.Operation == picture.Generate {
		s.Width, s.Height = p.size(1024, 1024)
		return draw.Picture(s)
	}
	base, err := p.source()
	if err != nil {
		return nil, err
	}
	s.Width, s.Height = p.size(base.Rect.Dx(), base.Rect.Dy())
	switch r.Operation {
	case picture.Remix:
		weight := 50
		if r.ImageWeight != nil {
			weight = *r.ImageWeight
		}
		return draw.Remix(base, weight, s)
	case picture.Reframe:
		return draw.Reframe(base, s)
	case picture.ReplaceBackground:
		return draw.ReplaceBackground(base, s)
	case picture.Upscale:
		return draw.Upscale(base), nil
	}
	return p.edit(base, s)
}

// edit changes what the mask marks, and brings the result into the size that was
// asked for.
func (p *painter) edit(base *image.NRGBA, s draw.Spec) (*image.NRGBA, error) {
	var mask *draw.Mask
	if p.req.Mask != nil {
		m, err := p.open(p.req.Mask)
		if err != nil {
			return nil, err
		}
		mask = &draw.Mask{NRGBA: m, Black: p.req.MaskKeeps}
	}
	w, h := s.Width, s.Height
	m, err := draw.Edit(base, mask, s)
	if err != nil {
		return nil, err
	}
	return draw.Cover(m, w, h)
}

// aspectEdge is the edge of a square whose area pictures of a ratio have, about.
const aspectEdge = 1024

// size is what was asked for, or the given one.
func (p *painter) size(width, height int) (w, h int) {
	r := p.req
	switch {
	case r.Size != picture.Size{}:
		return r.Size.Width, r.Size.Height
	case r.Aspect != picture.Aspect{}:
		return sizeOf(r.Aspect)
	}
	return width, height
}

// ratios are the sizes the vendor makes of its portrait ratios (wire/imagegen.md
// 6).
var ratios = map[picture.Aspect]picture.Size{
	{Width: 1, Height: 1}: {Width: 1024, Height: 1024}, {Width: 1, Height: 3}: {Width: 512, Height: 1536},
	{Width: 1, Height: 2}: {Width: 704, Height: 1408}, {Width: 9, Height: 16}: {Width: 736, Height: 1312},
	{Width: 10, Height: 16}: {Width: 800, Height: 1280}, {Width: 2, Height: 3}: {Width: 832, Height: 1248},
	{Width: 3, Height: 4}: {Width: 864, Height: 1152}, {Width: 4, Height: 5}: {Width: 896, Height: 1120},
}

func sizeOf(a picture.Aspect) (w, h int) {
	if s, ok := ratios[a]; ok {
		return s.Width, s.Height
	}
	if s, ok := ratios[picture.Aspect{Width: a.Height, Height: a.Width}]; ok {
		return s.Height, s.Width
	}
	if a.Width >= a.Height {
		return aspectEdge, max(aspectEdge*a.Height/max(a.Width, 1), 1)
	}
	return max(aspectEdge*a.Width/a.Height, 1), aspectEdge
}

// asInvalid makes a client's error of a picture that cannot be made.
func asInvalid(err error) error {
	if errors.Is(err, draw.ErrSize) {
		return dialogue.Invalid("size", "is more than the sandbox draws")
	}
	return err
}

// squareTokens are the output tokens of a picture of 1024x1024 by quality.
var squareTokens = map[string]int64{"low": 272, "": 1056, "auto": 1056, "medium": 1056, "standard": 1056, "high": 4160, "hd": 4160}

const (
	squarePixels   = 1024 * 1024
	sourceTokens   = 323 // of a picture that is edited, roughly
	tokensPartials = 100 // of each unfinished picture
)

// usage counts as the vendor does: output by quality and area.
func (p *painter) usage(reply *picture.Reply) *picture.Usage {
	u := &picture.Usage{InputText: tokens.Count(p.req.Prompt), InputImage: int64(len(p.req.Sources)) * sourceTokens}
	for i := range reply.Images {
		area := int64(reply.Images[i].Width) * int64(reply.Images[i].Height)
		u.OutputImage += squareTokens[p.req.Quality] * area / squarePixels
	}
	if p.req.Stream {
		u.OutputImage += int64(p.req.Partials) * tokensPartials
	}
	return u
}
