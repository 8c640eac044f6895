package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"stagedoor/test/harness"
)

// client makes jobs and asks for them.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

// Create begins a job.
func Create(ctx context.Context, g *harness.Gateway, prompt string) (Job, error) {
	body, err := json.Marshal(map[string]string{"model": "video-2", "prompt": prompt, "seconds": "4",
		"size": "720x1280"})
	if err != nil {
		return Job{}, err
	}
	return call(ctx, g, http.MethodPost, "/v1/videos", string(body))
}

// Delete removes a job that has ended.
func Delete(ctx context.Context, g *harness.Gateway, id string) error {
	_, err := call(ctx, g, http.MethodDelete, "/v1/videos/"+id, "")
	return err
}

func call(ctx context.Context, g *harness.Gateway, method, path, body string) (j Job, err error) {
	r, err := http.NewRequestWithContext(ctx, method, g.URL+path, strings.NewReader(body))
	if err != nil {
		return j, err
	}
	r.Header.Set("Authorization", "Bearer "+g.Key)
	r.Header.Set("Content-Type", "application/json")
	reply, err := client.Do(r)
	if err != nil {
		return j, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return j, err
	}
	if reply.StatusCode != http.StatusOK {
		return j, fmt.Errorf("%s %s: %s: %s", method, path, reply.Status, text)
	}
	return j, json.Unmarshal(text, &j)
}
