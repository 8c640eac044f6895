package meter

import (
	"testing"

	"stagedoor/actors/images"
	"stagedoor/actors/ledger"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// Images and tokens are charged by what each costs, and only what was delivered.
func TestBillsOfPictures(t *testing.T) {
	const dollar = 1_000_000
	byImage, byToken := &catalog.Price{PerImage: 40_000}, &catalog.Price{Input: 5 * dollar, Output: 40 * dollar}
	both := &catalog.Price{PerImage: 10_000, Input: 5 * dollar, Output: 40 * dollar}
	usage := &picture.Usage{InputText: 100, OutputImage: 1000}
	for name, tc := range map[string]struct {
		price     *catalog.Price
		delivered int
		usage     *picture.Usage
		err       *dialogue.Error
		want      int64
		flagged   bool
	}{
		"by image":               {byImage, 3, usage, nil, 120_000, false},
		"by image, uncounted":    {byImage, 3, nil, nil, 120_000, false},
		"one was withheld":       {byImage, 2, nil, nil, 80_000, false},
		"by token":               {byToken, 1, usage, nil, 500 + 40_000, false},
		"by both":                {both, 1, usage, nil, 10_000 + 500 + 40_000, false},
		"by token, uncounted":    {byToken, 1, nil, nil, 5*1 + 40*pictureTokens, true},
		"refused":                {both, 0, nil, &dialogue.Error{Status: 400}, 0, false},
		"failed after some work": {both, 0, usage, &dialogue.Error{Status: 502}, 0, false},
		"left with usage":        {both, 0, usage, &dialogue.Error{Status: 499}, 500 + 40_000, false},
	} {
		p := &Picture{price: tc.price, request: PictureRequest{Picture: &picture.Request{Prompt: "a", N: 3}}}
		o := &images.Outcome{Delivered: tc.delivered, Usage: tc.usage, Err: tc.err, Accepted: true}
		got := p.bill(o, endOf(o))
		if got.Amount != tc.want || (len(got.Flags) > 0) != tc.flagged {
			t.Errorf("%s: %d with %v, want %d", name, got.Amount, got.Flags, tc.want)
		}
		if tc.err == nil && got.Usage.Images != int64(tc.delivered) {
			t.Errorf("%s: %d images on the receipt", name, got.Usage.Images)
		}
	}
}

func TestEndsOfPictures(t *testing.T) {
	for status, want := range map[int]ledger.Ending{0: ledger.Finished, 400: ledger.Refused, 429: ledger.Refused,
		499: ledger.Left, 502: ledger.Failed} {
		o := &images.Outcome{}
		if status != 0 {
			o.Err = &dialogue.Error{Status: status}
		}
		if got := endOf(o); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
}
