package sandbox

import (
	"context"
	"errors"
	"hash/fnv"
	"image"
	"net/http"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/modelname"
	"stagedoor/providers/picture"
	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/sandbox/draw"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/shapes/imagegen"
	"stagedoor/providers/tokens"
)

const (
	partialPace  = 12 // tokens of text that take as long as a partial picture
	mostPictures = 10
)

// drawings bounds how many pictures are drawn at a time. Each takes a few times 4*draw.MaxPixels bytes.
var drawings = make(chan struct{}, 4)

// Picture is a picture.Simulator. Faults are requested as for text; each partial picture counts as one token.
// The first picture that fails ends the request, and so does the fault that the script asks for, after all
// pictures were drawn.
func (m *Model) Picture(ctx context.Context, r *picture.Request, header http.Header,
	emit func(*picture.Event) error) error {
	begun, err := m.newPlayer(ctx, header, r.Prompt)
	if err != nil {
		return err
	}
	p := &pictureReply{player: begun, req: r, emit: emit}
	if p.script.Block {
		return refused(r, blocked("image_generation_user_error"))
	}
	reply := &picture.Reply{Created: m.Env.Now(), OutputFormat: string(p.format()),
		Quality: chosen(r.Quality, "medium"), Background: chosen(r.Background, "opaque")}
	for i := range min(max(r.N, 1), mostPictures) {
		if err := p.make(reply, i); err != nil {
			return err
		}
	}
	switch {
	case p.script.Fault != NoFault:
		return p.failure()
	case p.script.Unsafe && !r.ShowsWithheld && r.Operation != picture.Describe:
		return refused(r, dialogue.ImageWithheld())
	}
	return emit(&picture.Event{Done: reply})
}

// chosen returns what the client asked for, or what the model chooses where the client left it the choice.
func chosen(asked, choice string) string {
	if asked == "" || asked == "auto" {
		return choice
	}
	return asked
}

// refused returns a refusal by moderation in the form of the client's shape.
func refused(r *picture.Request, e *dialogue.Error) error {
	if r.Refusal != nil {
		r.Refusal.Apply(e)
	}
	return e
}

// blocked returns the refusal of the vendor's moderation, with the error type of its route.
func blocked(kind string) *dialogue.Error {
	return dialogue.Reported(400, kind, "moderation_blocked", "the sandbox's moderation blocks the prompt as requested")
}

// pictureReply makes the pictures of one request.
type pictureReply struct {
	*player
	req  *picture.Request
	emit func(*picture.Event) error
}

// make draws one picture, sends its partial pictures and adds it to reply. A picture that moderation
// withholds is drawn all the same and loses its content, so that its place in the reply stays.
func (p *pictureReply) make(reply *picture.Reply, number int) error {
	img := picture.Image{MediaType: p.format().MediaType(), Seed: new(p.seed(number)), Prompt: p.finalPrompt(),
		StyleType: p.req.StyleType, Unsafe: p.script.Unsafe}
	partials, err := p.render(reply, &img)
	switch {
	case errors.Is(err, draw.ErrSize):
		return dialogue.Invalid("size", "is more than the sandbox draws")
	case err != nil || p.req.Operation == picture.Describe:
		return err
	}
	for i, data := range partials {
		if err := p.wait(p.env.Now().Add(partialPace * p.step())); err != nil {
			return err
		}
		if p.script.Fault != NoFault && p.delivered >= p.script.After {
			return p.failure()
		}
		p.delivered++
		shown := picture.Image{Data: data, MediaType: img.MediaType, Width: img.Width, Height: img.Height}
		if err := p.emit(&picture.Event{Partial: &picture.Partial{Index: i, Image: shown}}); err != nil {
			return err
		}
	}
	if img.Unsafe {
		img.Data, img.MediaType = nil, ""
	}
	reply.Images = append(reply.Images, img)
	reply.Size = picture.Size{Width: reply.Images[0].Width, Height: reply.Images[0].Height}.String()
	if p.req.Inbound != imagegen.Name {
		p.countTokens(reply)
	}
	return nil
}

// render draws and encodes a picture and its partial pictures, or describes one in reply. The wait for a
// place in drawings ends with the request.
func (p *pictureReply) render(reply *picture.Reply, img *picture.Image) (partials [][]byte, err error) {
	select {
	case drawings <- struct{}{}:
		defer func() { <-drawings }()
	case <-p.ctx.Done():
		return nil, context.Cause(p.ctx)
	}
	m, err := p.draw(*img.Seed)
	if err != nil {
		return nil, err
	}
	quality := 100
	if p.req.Compression != nil {
		quality = *p.req.Compression
	}
	img.Width, img.Height = m.Rect.Dx(), m.Rect.Dy()
	switch p.req.Operation {
	case picture.Describe:
		reply.Descriptions = []string{draw.Describe(m)}
		return nil, nil
	case picture.Upscale:
		img.Upscaled = picture.Size{Width: img.Width, Height: img.Height}
		img.Width, img.Height = p.req.Sources[0].Width, p.req.Sources[0].Height
	}
	for i := 0; p.req.Stream && i < p.req.Partials; i++ {
		data, err := draw.Encode(draw.Coarse(m, i, p.req.Partials), p.format(), quality)
		if err != nil {
			return nil, err
		}
		partials = append(partials, data)
	}
	img.Data, err = draw.Encode(m, p.format(), quality)
	return partials, err
}

// format returns the encoding that the client asked for, PNG by default.
func (p *pictureReply) format() draw.Format {
	if f := draw.Format(p.req.OutputFormat); f == draw.JPEG || f == draw.WebP {
		return f
	}
	return draw.PNG
}

// seed returns the client's seed for every picture, as the vendor does, or one made from the request.
func (p *pictureReply) seed(number int) int64 {
	r := p.req
	if r.Seed != nil {
		return *r.Seed
	}
	h := fnv.New32a()
	h.Write([]byte(strings.Join([]string{r.Model, r.Prompt, r.NegativePrompt, r.StyleType, r.Style}, "\x00")))
	return int64(h.Sum32()>>1+uint32(number)) & 0x7fffffff
}

// finalPrompt returns the prompt for replies that contain it: those of the image vendor and of the one other model that
// revises prompts.
func (p *pictureReply) finalPrompt() string {
	switch r := p.req; {
	case r.Inbound == imagegen.Name && r.MagicPrompt == "ON":
		return r.Prompt + ", drawn with great care by a sandbox"
	case r.Inbound == imagegen.Name, modelname.Public(r.Model) == "legacy-image-3":
		return r.Prompt
	}
	return ""
}

// openPicture decodes the first of files. The error is for the client: there is no file, or it is no picture.
func openPicture(files ...*picture.File) (*image.NRGBA, error) {
	if len(files) == 0 {
		return nil, dialogue.Missing("image")
	}
	m, err := draw.Decode(files[0].Reader())
	if err != nil {
		return nil, dialogue.Invalid("image", err.Error())
	}
	return m, nil
}

// draw carries out the operation.
func (p *pictureReply) draw(seed int64) (*image.NRGBA, error) {
	r := p.req
	caption, _, _ := strings.Cut(r.Prompt, "[sandbox:")
	s := draw.Spec{Prompt: r.Prompt + "\x00" + r.StyleType + r.Style, Seed: seed, Caption: caption,
		Transparent: r.Background == "transparent"}
	if r.Operation == picture.Generate {
		s.Width, s.Height = p.size(1024, 1024)
		return draw.Picture(s)
	}
	base, err := openPicture(r.Sources...)
	if err != nil {
		return nil, err
	}
	s.Width, s.Height = p.size(base.Rect.Dx(), base.Rect.Dy())
	switch r.Operation {
	case picture.Describe:
		return base, nil
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
	var mask *draw.Mask
	if r.Mask != nil {
		m, err := openPicture(r.Mask)
		if err != nil {
			return nil, err
		}
		mask = &draw.Mask{NRGBA: m, Black: r.MaskKeeps}
	}
	edited, err := draw.Edit(base, mask, s)
	if err != nil {
		return nil, err
	}
	return draw.Cover(edited, s.Width, s.Height)
}

// ratios maps the portrait ratios that the image vendor accepts to the sizes that it makes of them, and ratiosV1 those
// that models of its first generation make in other sizes.
var ratios = map[picture.Aspect]picture.Size{
	{Width: 1, Height: 1}: {Width: 1024, Height: 1024}, {Width: 1, Height: 3}: {Width: 512, Height: 1536},
	{Width: 1, Height: 2}: {Width: 704, Height: 1408}, {Width: 9, Height: 16}: {Width: 736, Height: 1312},
	{Width: 10, Height: 16}: {Width: 800, Height: 1280}, {Width: 2, Height: 3}: {Width: 832, Height: 1248},
	{Width: 3, Height: 4}: {Width: 864, Height: 1152}, {Width: 4, Height: 5}: {Width: 896, Height: 1120},
}

var ratiosV1 = map[picture.Aspect]picture.Size{
	{Width: 9, Height: 16}: {Width: 720, Height: 1280}, {Width: 10, Height: 16}: {Width: 768, Height: 1232},
	{Width: 2, Height: 3}: {Width: 768, Height: 1152}, {Width: 3, Height: 4}: {Width: 768, Height: 1024},
}

// size returns the size the client asked for, or else the given one. Without a size, a ratio decides, by the
// vendor's table or with a longer side of 1024 pixels.
func (p *pictureReply) size(width, height int) (w, h int) {
	if p.req.Size != (picture.Size{}) {
		return p.req.Size.Width, p.req.Size.Height
	}
	a := p.req.Aspect
	if a == (picture.Aspect{}) {
		return width, height
	}
	short, long := min(a.Width, a.Height), max(a.Width, a.Height, 1)
	upright := picture.Aspect{Width: short, Height: long}
	s, known := ratios[upright]
	if older, differs := ratiosV1[upright]; differs && p.req.Version == "V1" {
		s = older
	}
	if !known {
		s = picture.Size{Width: max(1024*short/long, 1), Height: 1024}
	}
	if a.Width > a.Height {
		return s.Height, s.Width
	}
	return s.Width, s.Height
}

// squareTokens has the output tokens of a picture of 1024x1024 by quality.
var squareTokens = map[string]int64{"low": 272, "": 1056, "auto": 1056, "medium": 1056, "standard": 1056,
	"high": 4160, "hd": 4160}

// countTokens counts as the vendor does: output by quality and area.
func (p *pictureReply) countTokens(reply *picture.Reply) {
	const square, sourceTokens, partialTokens = 1024 * 1024, 323, 100
	u := &picture.Usage{InputText: tokens.Count(p.req.Prompt), InputImage: int64(len(p.req.Sources)) * sourceTokens}
	for i := range reply.Images {
		area := int64(reply.Images[i].Width) * int64(reply.Images[i].Height)
		u.OutputImage += squareTokens[p.req.Quality] * area / square
	}
	if p.req.Stream {
		u.OutputImage += int64(p.req.Partials) * partialTokens
	}
	reply.Usage = u
}

// Submit begins a video job with the faults that its header or prompt requests. The error is a *dialogue.Error, ErrCut,
// ErrGarbage or the end of ctx. After one of the last three the job has begun, and the same key finds it without the
// fault: this is how a lost reply is simulated.
func (m *Model) Submit(ctx context.Context, e *job.Engine, key string, header http.Header, s job.Spec) (string, error) {
	p, err := m.newPlayer(ctx, header, s.Prompt)
	if err != nil {
		return "", err
	}
	if p.script.Block {
		return "", blocked("video_generation_user_error")
	}
	s.Faults = p.script.Job
	id, err := e.Submit(ctx, key, s)
	switch {
	case errors.Is(err, clip.ErrSpec):
		return "", dialogue.Invalid("size", "the sandbox has no clip of this size and length")
	case err != nil:
		return "", err
	}
	if p.script.Fault != NoFault && !e.Repeated(id) {
		return "", p.failure()
	}
	return id, nil
}
