package picture_test

import (
	"math"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// TestTheNearestRatioOfAModelIsTaken: of a size or an aspect. A ratio that differs by more than 2 % is a loss.
func TestTheNearestRatioOfAModelIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		r      picture.Request
		want   string
		losses string
	}{
		"neither":             {picture.Request{}, "", ""},
		"a ratio that exists": {picture.Request{Aspect: picture.Aspect{Width: 16, Height: 9}}, "16:9", ""},
		"the same in pixels":  {picture.Request{Size: picture.Size{Width: 1920, Height: 1080}}, "16:9", ""},
		"a pixel beside it":   {picture.Request{Size: picture.Size{Width: 1024, Height: 1023}}, "1:1", ""},
		"between two":         {picture.Request{Aspect: picture.Aspect{Width: 10, Height: 9}}, "1:1", "size:nearest"},
		"wider than all":      {picture.Request{Size: picture.Size{Width: 4000, Height: 100}}, "21:9", "size:nearest"},
		"higher than all":     {picture.Request{Aspect: picture.Aspect{Width: 1, Height: 3}}, "9:16", "size:nearest"},
		"a size and an aspect": {picture.Request{Size: picture.Size{Width: 2, Height: 3},
			Aspect: picture.Aspect{Width: 1, Height: 1}}, "2:3", ""},
	} {
		var rep dialogue.Report
		if got := picture.NearestRatio(&c.r, &rep); got != c.want || rep.Header() != c.losses {
			t.Errorf("%s: %q with the losses %q, want %q and %q", name, got, rep.Header(), c.want, c.losses)
		}
	}
}

// TestAModelInAConversationRefusesWhatWouldChangeThePicture and takes the rest as words or as a loss.
func TestAModelInAConversationRefusesWhatWouldChangeThePicture(t *testing.T) {
	for field, r := range map[string]*picture.Request{
		"model":      {Operation: picture.Describe},
		"mask":       {Operation: picture.Edit, Mask: new(picture.File)},
		"background": {Operation: picture.Generate, Background: "transparent"},
		"":           {Operation: picture.Remix, Background: "opaque"},
	} {
		err := picture.CheckConversational(r)
		if field == "" {
			if err != nil {
				t.Errorf("%+v: %v", r, err)
			}
			continue
		}
		if e, ok := err.(*dialogue.Error); !ok || e.Param != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for want, r := range map[string]*picture.Request{
		"a cat":              {Operation: picture.Generate, Prompt: "a cat"},
		"a cat\nAvoid: dogs": {Operation: picture.Edit, Prompt: "a cat", NegativePrompt: "dogs"},
		"Keep the subject as it is and replace the background: a wood": {Operation: picture.ReplaceBackground,
			Prompt: "a wood"},
	} {
		if got := picture.ConversationPrompt(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	weight := 50
	var rep dialogue.Report
	usual := picture.Request{Quality: "auto", OutputFormat: "png", StyleType: "AUTO", MagicPrompt: "ON"}
	picture.LoseUnsupported(&usual, &rep)
	if rep.Header() != "" {
		t.Errorf("values that mean the default are lost: %s", rep.Header())
	}
	picture.LoseUnsupported(&picture.Request{Quality: "high", OutputFormat: "webp", ImageWeight: &weight, Partials: 1,
		User: "u", NegativePrompt: "dogs", Extra: []picture.Field{{Name: "new_field"}},
		Others: []picture.Attachment{{Name: "extra_file"}}}, &rep)
	want := "quality,output_format,image_weight,partial_images,user,negative_prompt:prompt,new_field,extra_file"
	if rep.Header() != want {
		t.Errorf("lost %s, want %s", rep.Header(), want)
	}
}

// TestUsageOfSeveralCallsIsAddedWithoutHidingAMistake: a negative count of a provider stays one, and a sum does not
// overflow.
func TestUsageOfSeveralCallsIsAddedWithoutHidingAMistake(t *testing.T) {
	u := picture.Usage{InputText: 1, InputImage: 2, CachedInput: 3, OutputText: 4, OutputImage: 5}
	u.Add(&picture.Usage{InputText: 10, InputImage: 20, CachedInput: 30, OutputText: 40, OutputImage: 50})
	if u != (picture.Usage{InputText: 11, InputImage: 22, CachedInput: 33, OutputText: 44, OutputImage: 55}) {
		t.Errorf("%+v", u)
	}
	tokens := u.Tokens()
	if tokens.InputTotal != 33 || tokens.OutputTotal != 99 || tokens.CacheRead != 33 || tokens.ImageIn != 22 ||
		tokens.ImageOut != 55 {
		t.Errorf("%+v", tokens)
	}
	if none := (*picture.Usage)(nil).Tokens(); none != dialogue.NoUsage {
		t.Errorf("without a usage: %+v", none)
	}
	u.Add(&picture.Usage{OutputImage: -1})
	if u.Output() != dialogue.NegativeCount || u.Input() != 33 {
		t.Errorf("a negative count: %d out, %d in", u.Output(), u.Input())
	}
	u.Add(&picture.Usage{InputText: math.MaxInt64})
	if u.InputText != math.MaxInt64 || u.Input() != math.MaxInt64 {
		t.Errorf("the largest count: %+v", u)
	}
}

// TestSizesAreReadInOneForm: digits without signs, spaces or leading zeros, and not so many that an area overflows.
func TestSizesAreReadInOneForm(t *testing.T) {
	for _, s := range []string{"", "x", "16", "16x", "x9", "016x9", "16x09", "+16x9", "16 x 9", "16X9", "16x9x1",
		"100x9", "0x1"} {
		if a, ok := picture.ParseAspect(s); ok {
			t.Errorf("%q is read as %+v", s, a)
		}
	}
	if a, ok := picture.ParseAspect("16x9"); !ok || a.Ratio() != "16:9" {
		t.Errorf("16x9 is %+v", a)
	}
	if s, ok := picture.ParseSize("99999x99999"); !ok || s.Pixels() != 99999*99999 || s.String() != "99999x99999" {
		t.Errorf("the largest size is %+v", s)
	}
	if s, ok := picture.ParseSize(strings.Repeat("9", 6) + "x1"); ok {
		t.Errorf("a larger one is %+v", s)
	}
}
