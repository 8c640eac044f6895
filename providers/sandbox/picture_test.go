package sandbox_test

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/job"
)

// painted collects the events of Picture.
func painted(t *testing.T, r *picture.Request, directives string) (partials int, done *picture.Reply, err error) {
	t.Helper()
	m := &sandbox.Model{Env: env(), Base: sandbox.Script{Pace: sandbox.MaxPace}}
	err = m.Picture(t.Context(), r, http.Header{sandbox.Header: {directives}}, func(ev *picture.Event) error {
		if ev.Partial != nil {
			partials++
		}
		if ev.Done != nil {
			done = ev.Done
		}
		return nil
	})
	return partials, done, err
}

func fox(n int) *picture.Request {
	return &picture.Request{
		Inbound:   "images",
		Operation: picture.Generate,
		Prompt:    "a fox",
		N:         n,
		Size:      picture.Size{Width: 96, Height: 64},
	}
}

func TestPictureMakesAsManyAsAskedFor(t *testing.T) {
	r := fox(3)
	r.Stream, r.Partials = true, 2
	partials, done, err := painted(t, r, "")
	if err != nil || partials != 6 || done.Delivered() != 3 || done.Usage == nil {
		t.Fatalf("%d partials, %+v, %v", partials, done, err)
	}
	if bytes.Equal(done.Images[0].Data, done.Images[1].Data) {
		t.Error("two pictures are the same")
	}
	seed := int64(7)
	r.Seed = &seed
	if _, done, _ := painted(t, r, ""); !bytes.Equal(done.Images[0].Data, done.Images[1].Data) {
		t.Error("with a seed two pictures differ")
	}
}

func TestPictureSaysWhatItsModelChose(t *testing.T) {
	for model, prompt := range map[string]string{"dall-e-3": "a fox", "legacy-image-3": "a fox", "legacy-image-2": "",
		"dall-e-2": "", "gen-image-1": ""} {
		r := fox(1)
		r.Model, r.Quality = model, "auto"
		_, done, err := painted(t, r, "")
		if err != nil {
			t.Fatal(err)
		}
		if p := done.Images[0].Prompt; p != prompt || done.Quality != "medium" || done.Background != "opaque" {
			t.Errorf("%s: prompt %q, quality %s, background %s", model, p, done.Quality, done.Background)
		}
	}
	for version, size := range map[string]string{"V1": "1280x720", "V2": "1312x736"} {
		r := fox(1)
		r.Inbound, r.Version = "imagegen", version
		r.Size, r.Aspect = picture.Size{}, picture.Aspect{Width: 16, Height: 9}
		if _, done, err := painted(t, r, ""); err != nil || done.Size != size {
			t.Errorf("16:9 of %s is not %s, %v", version, size, err)
		}
	}
}

func TestPictureFailsAsRequested(t *testing.T) {
	rows := []struct {
		directives string
		in         dialogue.Shape
		refusal    *dialogue.Moderation
		want       error
		status     int
	}{
		{"cut", "images", nil, sandbox.ErrCut, 0},
		{"garbage", "images", nil, sandbox.ErrGarbage, 0},
		{"error", "images", nil, nil, 500},
		{"block", "images", nil, nil, 400},
		{"block", "imagegen", &dialogue.Moderation{Status: 422}, nil, 422},
		{"status=429", "images", nil, nil, 429},
		{"dance", "images", nil, nil, 400},
	}
	for _, row := range rows {
		r := fox(1)
		r.Inbound, r.Refusal = row.in, row.refusal
		_, done, err := painted(t, r, row.directives)
		status := 0
		if failure := new(dialogue.Error); errors.As(err, &failure) {
			status = failure.Status
		}
		if done != nil || status != row.status || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%s: %v, %+v", row.directives, err, done)
		}
	}
	failure := new(dialogue.Error)
	if _, done, err := painted(t, fox(1), "unsafe"); done != nil || !errors.As(err, &failure) ||
		failure.Status != 400 || failure.Code != "moderation_blocked" {
		t.Errorf("unsafe for a shape without a word for it: %+v %v", done, err)
	}
	r := fox(1)
	r.ShowsWithheld = true
	if _, done, err := painted(t, r, "unsafe"); err != nil || done.Delivered() != 0 || !done.Images[0].Unsafe {
		t.Errorf("unsafe: %+v %v", done, err)
	}
}

func TestSubmitLosesTheReplyButNotTheJob(t *testing.T) {
	m, e := &sandbox.Model{Env: env()}, &job.Engine{Now: env().Now}
	spec := job.Spec{Prompt: "a fox", Width: 720, Height: 1280, Seconds: 4}
	if _, err := m.Submit(t.Context(), e, "key", http.Header{sandbox.Header: {"cut"}}, spec); !errors.Is(err,
		sandbox.ErrCut) {
		t.Fatalf("first: %v", err)
	}
	id, err := m.Submit(t.Context(), e, "key", nil, spec)
	if counts := e.Counts(); err != nil || len(counts) != 1 || counts[0].ID != id || counts[0].Submissions != 2 {
		t.Errorf("second: %v, %+v", err, counts)
	}
}
