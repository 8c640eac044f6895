package sdk

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const shot = "A red fox in the snow [sandbox: job=1s]"

// film makes a video and waits for it as the client's helper does.
func film(t *testing.T, client openai.Client, size openai.VideoSize) *openai.Video {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	video, err := client.Videos.NewAndPoll(ctx, openai.VideoNewParams{Prompt: shot, Model: "sora-2", Seconds: "4", Size: size}, 500)
	if err != nil {
		t.Fatal(err)
	}
	return video
}

// awaited waits for the end of a video with long polls.
func awaited(t *testing.T, client openai.Client, id string) *openai.Video {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		video, err := client.Videos.Get(t.Context(), id, option.WithQuery("wait", "20s"))
		switch {
		case err != nil:
			t.Fatal(err)
		case video.Status == openai.VideoStatusCompleted, video.Status == openai.VideoStatusFailed:
			return video
		case time.Now().After(deadline):
			t.Fatalf("%s is still %s", id, video.Status)
		}
	}
}

// downloaded is content of a finished video.
func downloaded(t *testing.T, client openai.Client, id string, variant openai.VideoDownloadContentParamsVariant, mediaType string) []byte {
	t.Helper()
	res, err := client.Videos.DownloadContent(t.Context(), id, openai.VideoDownloadContentParams{Variant: variant})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != mediaType || int64(len(content)) != res.ContentLength {
		t.Fatalf("got status %d, %s, %d bytes, %v", res.StatusCode, res.Header.Get("Content-Type"), len(content), err)
	}
	return content
}

func TestTheWholeLifeOfAVideo(t *testing.T) {
	client := openAI(t)
	video := film(t, client, openai.VideoSize1280x720)
	if video.Status != openai.VideoStatusCompleted || video.Progress != 100 || video.CompletedAt == 0 || video.ExpiresAt == 0 ||
		video.Seconds != openai.VideoSeconds4 || video.Size != openai.VideoSize1280x720 || video.Prompt != shot {
		t.Errorf("got %s", video.RawJSON())
	}
	if content := downloaded(t, client, video.ID, "", "video/mp4"); string(content[4:8]) != "ftyp" {
		t.Errorf("got %d bytes, no MP4", len(content))
	}
	downloaded(t, client, video.ID, openai.VideoDownloadContentParamsVariantThumbnail, "image/webp")
	downloaded(t, client, video.ID, openai.VideoDownloadContentParamsVariantSpritesheet, "image/jpeg")

	remix, err := client.Videos.Remix(t.Context(), video.ID, openai.VideoRemixParams{Prompt: shot})
	if err != nil {
		t.Fatal(err)
	}
	if remix.RemixedFromVideoID != video.ID || remix.Status != openai.VideoStatusQueued {
		t.Errorf("got %s", remix.RawJSON())
	}
	_, err = client.Videos.Remix(t.Context(), remix.ID, openai.VideoRemixParams{Prompt: shot})
	wantOpenAIError(t, err, http.StatusBadRequest, "video_id")
	if got := awaited(t, client, remix.ID); got.Status != openai.VideoStatusCompleted {
		t.Errorf("got %s", got.RawJSON())
	}

	gone, err := client.Videos.Delete(t.Context(), video.ID)
	if err != nil || !gone.Deleted || gone.ID != video.ID {
		t.Errorf("got %+v, %v", gone, err)
	}
	_, err = client.Videos.Get(t.Context(), video.ID)
	wantOpenAIError(t, err, http.StatusNotFound, "video_id")
}

func TestVideosComeInPages(t *testing.T) {
	client := openAI(t)
	var made []string
	for range 3 {
		video, err := client.Videos.New(t.Context(), openai.VideoNewParams{Prompt: shot})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, video.ID)
		time.Sleep(2 * time.Millisecond) // the order is that of milliseconds
	}
	pages := client.Videos.ListAutoPaging(t.Context(), openai.VideoListParams{Limit: openai.Int(2)})
	for n := len(made) - 1; n >= 0; n-- {
		if !pages.Next() || pages.Current().ID != made[n] {
			t.Fatalf("got %q, %v, want %s", pages.Current().ID, pages.Err(), made[n])
		}
	}
}

func TestVideosAreMadeOfVideos(t *testing.T) {
	client := openAI(t)
	source := film(t, client, openai.VideoSize1280x720)
	mine := downloaded(t, client, source.ID, "", "video/mp4")
	byID := openai.VideoEditParamsVideoVideoReferenceInputParam{ID: source.ID}
	alsoByID := openai.VideoExtendParamsVideoVideoReferenceInputParam{ID: source.ID}
	upload := func() io.Reader { return openai.File(bytes.NewReader(mine), "fox.mp4", "video/mp4") }
	edit := func(from openai.VideoEditParamsVideoUnion) (*openai.Video, error) {
		return client.Videos.Edit(t.Context(), openai.VideoEditParams{Prompt: shot, Video: from})
	}
	extend := func(from openai.VideoExtendParamsVideoUnion) (*openai.Video, error) {
		return client.Videos.Extend(t.Context(), openai.VideoExtendParams{Prompt: shot, Seconds: "4", Video: from})
	}
	for name, c := range map[string]struct {
		begin   func() (*openai.Video, error)
		seconds openai.VideoSeconds
	}{
		"an edit of a job": {func() (*openai.Video, error) {
			return edit(openai.VideoEditParamsVideoUnion{OfVideoEditsVideoVideoReferenceInputParam: &byID})
		}, "4"},
		"an edit of an upload": {func() (*openai.Video, error) { return edit(openai.VideoEditParamsVideoUnion{OfFile: upload()}) }, "4"},
		"an extension of a job": {func() (*openai.Video, error) {
			return extend(openai.VideoExtendParamsVideoUnion{OfVideoExtendsVideoVideoReferenceInputParam: &alsoByID})
		}, "8"},
		"an extension of an upload": {func() (*openai.Video, error) { return extend(openai.VideoExtendParamsVideoUnion{OfFile: upload()}) }, "8"},
	} {
		t.Run(name, func(t *testing.T) {
			begun, err := c.begin()
			if err != nil {
				t.Fatal(err)
			}
			video := awaited(t, client, begun.ID)
			if video.Status != openai.VideoStatusCompleted || video.Seconds != c.seconds || video.Size != source.Size {
				t.Errorf("got %s", video.RawJSON())
			}
			if content := downloaded(t, client, video.ID, "", "video/mp4"); string(content[4:8]) != "ftyp" {
				t.Errorf("got %d bytes, no MP4", len(content))
			}
		})
	}
}

func TestVideoErrorsAreReadable(t *testing.T) {
	client := openAI(t)
	gif := func() io.Reader { return bytes.NewReader([]byte("GIF89a")) }
	_, err := client.Videos.New(t.Context(), openai.VideoNewParams{Prompt: shot, InputReference: openai.VideoNewParamsInputReferenceUnion{OfFile: gif()}})
	wantOpenAIError(t, err, http.StatusBadRequest, "input_reference")
	_, err = client.Videos.Edit(t.Context(), openai.VideoEditParams{Prompt: shot, Video: openai.VideoEditParamsVideoUnion{OfFile: gif()}})
	wantOpenAIError(t, err, http.StatusBadRequest, "video")
	_, err = client.Videos.New(t.Context(), openai.VideoNewParams{Prompt: shot, Seconds: "5"})
	wantOpenAIError(t, err, http.StatusBadRequest, "seconds")
	_, err = client.Videos.Get(t.Context(), "video_unknown")
	wantOpenAIError(t, err, http.StatusNotFound, "video_id")
}
