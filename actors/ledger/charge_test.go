package ledger_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stagedoor/actors/ledger"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// price is easy to add up by head: micro-dollars per token.
var price = &catalog.Price{
	Input:       1_000_000,
	Output:      10_000_000,
	CachedInput: 100_000,
	CacheWrite:  2_000_000,
	Reasoning:   20_000_000,
}

// images returns the bill for n images.
func images(p *catalog.Price, n int64) ledger.Bill {
	return ledger.Charge(ledger.Work{Price: p.ByUnit(), Media: true, Images: n})
}

// usage makes a Usage; -1 is a count that was not reported.
func usage(in, out int64) dialogue.Usage {
	u := dialogue.NoUsage
	u.InputTotal, u.OutputTotal = in, out
	return u
}

func with(u dialogue.Usage, change func(*dialogue.Usage)) dialogue.Usage {
	change(&u)
	return u
}

func TestCharge(t *testing.T) {
	counted := usage(90, 45)
	tests := []struct {
		name  string
		work  ledger.Work
		want  int64
		flags []string
	}{
		{"finished: all usage reported", ledger.Work{Reported: usage(100, 50)}, 100 + 500, nil},
		{"finished with nothing to say", ledger.Work{Reported: usage(100, 0), Counted: usage(90, 0)}, 100, nil},
		{
			"finished: cached and written tokens have their own price",
			ledger.Work{Reported: with(usage(100, 0), func(u *dialogue.Usage) {
				u.CacheRead, u.CacheWrite5m, u.CacheWrite1h = 50, 10, 20
			})},
			20 + 5 + 60,
			nil,
		},
		{
			"finished: reasoning has its own price",
			ledger.Work{Reported: with(usage(0, 50), func(u *dialogue.Usage) { u.Reasoning = 20 })},
			300 + 400,
			nil,
		},
		{
			"finished: no usage reported",
			ledger.Work{Reported: dialogue.NoUsage, Counted: counted},
			90 + 450,
			[]string{"usage_missing"},
		},
		{
			"finished: only the input reported",
			ledger.Work{Reported: usage(100, -1), Counted: counted},
			100 + 450,
			[]string{"usage_missing"},
		},
		{
			"finished: negative output",
			ledger.Work{Reported: usage(100, -50), Counted: counted},
			100 + 450,
			[]string{"usage_negative"},
		},
		{
			"finished: both negative",
			ledger.Work{Reported: usage(-7, math.MinInt64), Counted: counted},
			90 + 450,
			[]string{"usage_negative"},
		},
		{
			"finished: as much as the model gives",
			ledger.Work{Reported: usage(1, 1000), Counted: counted, MostOutput: 1000, Exact: true},
			1 + 10_000,
			nil,
		},
		{
			"finished: more than the model gives is charged as the most it gives",
			ledger.Work{Reported: usage(1, 1001), Counted: counted, MostOutput: 1000, Exact: true},
			1 + 10_000,
			[]string{"usage_absurd"},
		},
		{
			"finished: beyond all reason",
			ledger.Work{Reported: usage(1, math.MaxInt64), Counted: counted, MostOutput: 1000},
			1 + 10_000,
			[]string{"usage_absurd"},
		},
		{
			"finished: more was delivered than a default says",
			ledger.Work{Reported: usage(1, 1001), Counted: usage(1, 900), MostOutput: 100},
			1 + 9_000,
			[]string{"usage_absurd"},
		},
		{
			"finished: no usage reported, and a count beyond the model",
			ledger.Work{Reported: dialogue.NoUsage, Counted: counted, MostOutput: 40, Exact: true},
			90 + 400,
			[]string{"usage_missing"},
		},
		{
			"finished: absurd input",
			ledger.Work{Reported: usage(math.MaxInt64, 1), Counted: counted},
			90 + 10,
			[]string{"usage_absurd"},
		},
		{
			"finished: a picture by reference is more than it seems",
			ledger.Work{Reported: usage(200_000, 1), Counted: counted},
			200_000 + 10,
			nil,
		},
		{
			"finished: an answer that cost nothing",
			ledger.Work{Reported: usage(100, 0), Counted: counted},
			100 + 450,
			[]string{"usage_contradicting"},
		},
		{
			"finished: more cached than there was",
			ledger.Work{Reported: with(usage(100, 0), func(u *dialogue.Usage) { u.CacheRead = 1 << 60 })},
			10,
			[]string{"usage_contradicting"},
		},
		{
			"finished: more reasoning than output",
			ledger.Work{Reported: with(usage(0, 5), func(u *dialogue.Usage) { u.Reasoning = 6 })},
			100,
			[]string{"usage_contradicting"},
		},
		{
			"finished: negative parts",
			ledger.Work{Reported: with(usage(10, 5), func(u *dialogue.Usage) { u.Reasoning, u.CacheRead = -9, -9 })},
			60,
			[]string{"usage_negative"},
		},

		{"refused", ledger.Work{End: ledger.Refused, Reported: usage(100, 50), Counted: counted}, 0, nil},
		{"refused after all", ledger.Work{End: ledger.Refused, Reported: usage(100, 50), Counted: counted}, 0, nil},
		{
			"failed before anything",
			ledger.Work{End: ledger.Failed, Reported: usage(100, 50), Counted: usage(90, 0)},
			0,
			nil,
		},
		{
			"failed midway, usage reported",
			ledger.Work{End: ledger.Failed, Reported: usage(100, 60), Counted: counted},
			100 + 600,
			nil,
		},
		{
			"failed midway, nothing reported",
			ledger.Work{End: ledger.Failed, Reported: dialogue.NoUsage, Counted: counted},
			90 + 450,
			[]string{"usage_missing", "usage_partial"},
		},
		{
			"failed midway, only the beginning reported",
			ledger.Work{End: ledger.Failed, Reported: usage(100, 1), Counted: counted},
			100 + 450,
			[]string{"usage_partial"},
		},
		{
			"failed after the provider accepted, and nothing delivered",
			ledger.Work{End: ledger.Failed, Accepted: true, Reported: usage(100, -1), Counted: usage(90, 0)},
			0,
			nil,
		},
		{
			"client left before the provider accepted",
			ledger.Work{End: ledger.Left, Reported: dialogue.NoUsage, Counted: usage(90, 0)},
			0,
			nil,
		},
		{
			"client left before the first output",
			ledger.Work{End: ledger.Left, Accepted: true, Reported: dialogue.NoUsage, Counted: usage(90, 0)},
			90,
			[]string{"usage_missing", "usage_partial"},
		},
		{
			"client left before the first output, usage reported",
			ledger.Work{End: ledger.Left, Accepted: true, Reported: usage(100, 0), Counted: usage(90, 0)},
			100,
			nil,
		},
		{
			"client left midway",
			ledger.Work{End: ledger.Left, Accepted: true, Reported: usage(100, -1), Counted: counted},
			100 + 450,
			[]string{"usage_partial"},
		},
		{
			"client left at the end",
			ledger.Work{End: ledger.Left, Accepted: true, Reported: usage(100, 60), Counted: counted},
			100 + 600,
			nil,
		},
		{
			"balance ran out",
			ledger.Work{End: ledger.Exhausted, Accepted: true, Reported: usage(100, 1), Counted: counted},
			100 + 450,
			[]string{"usage_partial"},
		},
		{
			"client left, beyond all reason",
			ledger.Work{
				End:        ledger.Left,
				Accepted:   true,
				Reported:   usage(100, 1<<50),
				Counted:    counted,
				MostOutput: 50,
				Exact:      true,
			},
			100 + 500,
			[]string{"usage_absurd"},
		},
		{
			"client left: the count is no more than the model gives",
			ledger.Work{
				End:        ledger.Left,
				Accepted:   true,
				Reported:   usage(100, -1),
				Counted:    counted,
				MostOutput: 40,
				Exact:      true,
			},
			100 + 400,
			[]string{"usage_partial"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.work.Price = price
			if tt.work.MostOutput == 0 {
				tt.work.MostOutput = 8192
			}
			b := ledger.Charge(tt.work)
			if b.Amount != tt.want || !reflect.DeepEqual(b.Flags, tt.flags) {
				t.Errorf("got %d %v, want %d %v", b.Amount, b.Flags, tt.want, tt.flags)
			}
			if sum := total(b.Prices); sum != b.Amount {
				t.Errorf("the rows %+v add up to %d, not to %d", b.Prices, sum, b.Amount)
			}
			tt.work.Price = nil
			if b := ledger.Charge(tt.work); b.Amount != 0 {
				t.Errorf("without a price: got %d", b.Amount)
			}
		})
	}
}

func total(rows []money.PriceRow) int64 {
	var sum int64
	for _, r := range rows {
		sum += r.Quantity * r.Price / r.Per
	}
	return sum
}

// A charge is neither negative nor more than an account can have, whatever an upstream reports.
func TestChargeIsBounded(t *testing.T) {
	any64 := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{-1, 0, 1, math.MaxInt64, math.MinInt64}))
	anyUsage := rapid.Custom(func(t *rapid.T) dialogue.Usage {
		n := func(name string) int64 { return any64.Draw(t, name) }
		return dialogue.Usage{
			InputTotal:   n("in"),
			CacheRead:    n("read"),
			CacheWrite5m: n("5m"),
			CacheWrite1h: n("1h"),
			CacheWrite:   n("write"),
			OutputTotal:  n("out"),
			Reasoning:    n("reasoning"),
		}
	})
	positive := rapid.Int64Range(0, math.MaxInt64)
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) int64 { return positive.Draw(t, name) }
		p := &catalog.Price{
			Input:       n("a"),
			Output:      n("b"),
			CachedInput: n("c"),
			CacheWrite:  n("d"),
			Reasoning:   n("e"),
			PerImage:    n("f"),
			PerSecond:   n("g"),
		}
		b := ledger.Charge(
			ledger.Work{Price: p, Reported: anyUsage.Draw(t, "reported"), Counted: anyUsage.Draw(t, "counted"),
				End: ledger.Ending(
					rapid.IntRange(0, 4).Draw(t, "end"),
				), MostOutput: any64.Draw(t, "max"), Exact: rapid.Bool().Draw(t, "exact"),
				Accepted: rapid.Bool().Draw(t, "accepted")},
		)
		for what, amount := range map[string]int64{"charge": b.Amount, "images": images(p, n("n")).Amount,
			"video":    ledger.Video(p, ledger.VideoLength{Asked: n("n")}).Amount,
			"estimate": ledger.Estimate(p, ledger.Demand{Prompt: any64.Draw(t, "prompt")}, any64.Draw(t, "most"))} {
			if amount < 0 || amount > budget.MaxCredits {
				t.Fatalf("%s of %d", what, amount)
			}
		}
		if b.Usage.Input < 0 || b.Usage.Output < 0 || b.Usage.CacheRead+b.Usage.CacheWrite > b.Usage.Input ||
			b.Usage.Reasoning > b.Usage.Output {
			t.Fatalf("usage %+v", b.Usage)
		}
	})
}

func TestEstimateCoversEveryKindOfToken(t *testing.T) {
	if got := ledger.Estimate(price, ledger.Demand{Prompt: 100}, 50); got != 200+1000 {
		t.Errorf("got %d, want every token at its dearest: 1200", got)
	}
	if got := ledger.Estimate(nil, ledger.Demand{Prompt: 100}, 50); got != 0 {
		t.Errorf("free: got %d", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(0, 1_000_000)
		p := &catalog.Price{
			Input:       small.Draw(t, "in"),
			Output:      small.Draw(t, "out"),
			CachedInput: small.Draw(t, "read"),
			CacheWrite:  small.Draw(t, "write"),
			Reasoning:   small.Draw(t, "reasoning"),

			CacheWrite1h: small.Draw(t, "write for an hour"),
			AudioInput:   small.Draw(t, "sound in"), AudioCachedInput: small.Draw(t, "cached sound"),
			AudioOutput: small.Draw(t, "sound out"),
			ImageInput:  small.Draw(t, "image in"), ImageOutput: small.Draw(t, "image out"),
			WebSearch: small.Draw(t, "search"),
		}
		in, out := small.Draw(t, "input"), small.Draw(t, "output")
		demand := ledger.Demand{Prompt: in, Largest: in, Special: true, Searches: rapid.Int64Range(0, 10).Draw(t, "n")}
		held := ledger.Estimate(p, demand, out)
		u := usage(in, out)
		u.CacheRead = rapid.Int64Range(0, in).Draw(t, "cached")
		u.CacheWrite = rapid.Int64Range(0, in-u.CacheRead).Draw(t, "written")
		u.CacheWrite1h = rapid.Int64Range(0, u.CacheWrite).Draw(t, "for an hour")
		u.AudioIn, u.ImageIn = rapid.Int64Range(0, in).Draw(t, "heard"), rapid.Int64Range(0, in).Draw(t, "seen")
		u.AudioOut, u.ImageOut = rapid.Int64Range(0, out).Draw(t, "said"), rapid.Int64Range(0, out).Draw(t, "drawn")
		u.Reasoning = rapid.Int64Range(0, out).Draw(t, "thought")
		u.WebSearches = rapid.Int64Range(0, demand.Searches).Draw(t, "searched")
		if b := ledger.Charge(ledger.Work{Price: p, Reported: u, Counted: u, MostOutput: out}); b.Amount > held {
			t.Fatalf("held %d, charged %d", held, b.Amount)
		}
		if n := ledger.Affordable(p, held, demand); n < out {
			t.Fatalf("held for %d tokens, enough for %d", out, n)
		} else if n < math.MaxInt64 && n > 0 && ledger.Estimate(p, demand, n) > held {
			t.Fatalf("%d tokens are said to cost no more than %d", n, held)
		}
	})
	if n := ledger.Affordable(nil, 0, ledger.Demand{Prompt: 100}); n != math.MaxInt64 {
		t.Errorf("%d tokens of a free model are affordable", n)
	}
	if n := ledger.Affordable(price, 199, ledger.Demand{Prompt: 100}); n != -1 {
		t.Errorf("not even the prompt: got %d, want -1", n)
	}
}

// TestChargeOfMedia: images, partial images and seconds, of the images routes, of the image
// vendor's and of videos.
func TestChargeOfMedia(t *testing.T) {
	turbo, _ := ledger.Speed("TURBO")
	image, partial := &catalog.Price{PerImage: 40_000}, &catalog.Price{PerImage: 40_000, PerPartial: 1_000}
	second := &catalog.Price{PerSecond: 100_000}
	tokens := &catalog.Price{Input: 1_000_000, Output: 10_000_000}
	tests := []struct {
		name string
		work ledger.Work
		want int64
	}{
		{"images that were delivered", ledger.Work{Price: image, Images: 3}, 120_000},
		{"the image vendor's, by rendering speed", ledger.Work{Price: turbo, Images: 2}, 60_000},
		{
			"the client left with all images made",
			ledger.Work{Price: turbo, End: ledger.Left, Accepted: true, Images: 2},
			60_000,
		},
		{"the client left before any", ledger.Work{Price: turbo, End: ledger.Left, Accepted: true}, 0},
		{"the provider failed", ledger.Work{Price: image, End: ledger.Failed, Accepted: true}, 0},
		{"refused", ledger.Work{Price: image, End: ledger.Refused, Partials: 3, Begun: 1}, 0},
		{
			"a picture with partial images, which cost nothing",
			ledger.Work{Price: image, Images: 1, Partials: 3},
			40_000,
		},
		{
			"a picture with partial images, which have a price",
			ledger.Work{Price: partial, Images: 1, Partials: 3},
			43_000,
		},
		{
			"the client left with all partial images",
			ledger.Work{Price: image, End: ledger.Left, Accepted: true, Partials: 3, Begun: 1},
			40_000,
		},
		{
			"the client left with all partial images, which have a price",
			ledger.Work{Price: partial, End: ledger.Left, Accepted: true, Partials: 3, Begun: 1},
			3_000,
		},
		{
			"the client left with the last one of high quality, which is the picture",
			ledger.Work{Price: partial, End: ledger.Left, Accepted: true, Partials: 3, Begun: 1, Whole: 1},
			43_000,
		},
		{
			"the provider failed after partial images",
			ledger.Work{Price: image, End: ledger.Failed, Accepted: true, Partials: 2, Begun: 1},
			0,
		},
		{
			"the provider failed after partial images, which have a price",
			ledger.Work{Price: partial, End: ledger.Failed, Accepted: true, Partials: 2, Begun: 1},
			2_000,
		},
		{
			"the provider failed after the last one of high quality",
			ledger.Work{Price: image, End: ledger.Failed, Accepted: true, Partials: 3, Begun: 1, Whole: 1},
			40_000,
		},
		{"by tokens", ledger.Work{Price: tokens, Images: 1, Reported: usage(100, 1000)}, 100 + 10_000},
		{
			"by tokens, the client left with a partial image",
			ledger.Work{
				Price:    tokens,
				End:      ledger.Left,
				Accepted: true,
				Partials: 1,
				Begun:    1,
				Reported: dialogue.NoUsage,
				Counted:  usage(50, 700),
			},
			50 + 7_000,
		},
		{
			"by tokens, the client left before any",
			ledger.Work{
				Price:    tokens,
				End:      ledger.Left,
				Accepted: true,
				Reported: dialogue.NoUsage,
				Counted:  usage(50, 0),
			},
			50,
		},
		{"a video", ledger.Work{Price: second, Video: ledger.VideoLength{Asked: 12}}, 1_200_000},
		{
			"a video that was made while its client had left",
			ledger.Work{Price: second, End: ledger.Left, Accepted: true, Video: ledger.VideoLength{Asked: 12}},
			1_200_000,
		},
		{"a video that failed", ledger.Work{Price: second, End: ledger.Failed, Accepted: true}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.work.Media, tt.work.MostOutput = true, 8192
			if b := ledger.Charge(tt.work); b.Amount != tt.want || total(b.Prices) != tt.want {
				t.Errorf("got %d, want %d: %+v", b.Amount, tt.want, b.Prices)
			}
		})
	}
}

// A client decides how much it requests, and the bill follows the provider's report.
func TestVideosAreChargedAsTheProviderMadeThem(t *testing.T) {
	price := &catalog.Price{PerSecond: 100_000}
	for _, tt := range []struct {
		name    string
		end     ledger.Ending
		length  ledger.VideoLength
		seconds int64
		flag    string
	}{
		{"as asked", ledger.Finished, ledger.VideoLength{Asked: 8, Reported: 8, Most: 20}, 8, ""},
		{"reported less", ledger.Finished, ledger.VideoLength{Asked: 8, Reported: 4, Most: 20}, 4, ""},
		{"reported more", ledger.Finished, ledger.VideoLength{Asked: 4, Reported: 12, Most: 20}, 12, ""},
		{"reported the most", ledger.Finished, ledger.VideoLength{Asked: 4, Reported: 20, Most: 20}, 20, ""},
		{"absurd", ledger.Finished, ledger.VideoLength{Asked: 4, Reported: 21, Most: 20}, 20, ledger.FlagAbsurd},
		{"beyond all reason", ledger.Finished, ledger.VideoLength{Asked: 4, Reported: math.MaxInt64, Most: 20}, 20,
			ledger.FlagAbsurd},
		{"missing", ledger.Finished, ledger.VideoLength{Asked: 8, Most: 20}, 8, ""},
		{"one that cannot be", ledger.Finished, ledger.VideoLength{Asked: 8, Reported: -1, Most: 20}, 8,
			ledger.FlagContradicting},
		{"failed", ledger.Failed, ledger.VideoLength{Asked: 8, Reported: 8, Most: 20}, 0, ""},
		{"refused", ledger.Refused, ledger.VideoLength{Asked: 8, Reported: 8, Most: 20}, 0, ""},
		{"the client left", ledger.Left, ledger.VideoLength{Asked: 8, Reported: 12, Most: 20}, 12, ""},
	} {
		b := ledger.Charge(ledger.Work{Price: price, Media: true, End: tt.end, Accepted: true, Video: tt.length})
		if b.Amount != tt.seconds*price.PerSecond || b.Usage.Seconds != tt.seconds || total(b.Prices) != b.Amount {
			t.Errorf("%s: got %+v, want %d seconds", tt.name, b, tt.seconds)
		}
		if strings.Join(b.Flags, " ") != tt.flag {
			t.Errorf("%s: got the flags %q, want %q", tt.name, b.Flags, tt.flag)
		}
	}
}

func TestMediaPrices(t *testing.T) {
	for speed, want := range map[string]int64{"TURBO": 30_000, "DEFAULT": 60_000, "QUALITY": 90_000, "": 60_000} {
		p, ok := ledger.Speed(speed)
		if !ok || images(p, 1).Amount != want || images(p, 8).Amount != 8*want {
			t.Errorf("speed %q: got %+v, want %d an image", speed, p, want)
		}
	}
	if _, ok := ledger.Speed("turbo"); ok {
		t.Error("speeds are spelt as the documents do")
	}
	if b := images(&catalog.Price{PerImage: 5}, -1); b.Amount != 0 {
		t.Errorf("no images: got %d", b.Amount)
	}
	if b := ledger.Video(&catalog.Price{PerSecond: 100_000}, ledger.VideoLength{Asked: 12}); b.Amount != 1_200_000 ||
		b.Usage.Seconds != 12 ||
		total(b.Prices) != b.Amount {
		t.Errorf("video: got %+v", b)
	}
	if b := ledger.Video(nil, ledger.VideoLength{Asked: 12}); b.Amount != 0 || b.Usage.Seconds != 12 {
		t.Errorf("free video: got %+v", b)
	}
}
