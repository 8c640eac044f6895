package videoclient

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Job is a video job as the gateway's API returns it.
type Job struct {
	ID          string  `json:"id"`
	Object      string  `json:"object"`
	Model       string  `json:"model"`
	Status      string  `json:"status"`
	Progress    int     `json:"progress"`
	CreatedAt   int64   `json:"created_at"`
	CompletedAt *int64  `json:"completed_at"`
	ExpiresAt   *int64  `json:"expires_at"`
	Prompt      *string `json:"prompt"`
	Size        string  `json:"size"`
	Seconds     string  `json:"seconds"`
	RemixedFrom *string `json:"remixed_from_video_id"`
	Fault       *Fault  `json:"error"`
}

// Fault gives the reason of a failed job.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Words of Job.Status.
const (
	Completed = "completed"
	Failed    = "failed"
)

// Final reports whether the job has ended, well or not.
func (j *Job) Final() bool { return j.Status == Completed || j.Status == Failed }

// Took returns the duration of the job, up to now if it has not ended.
func (j *Job) Took(now time.Time) time.Duration {
	end := now.Unix()
	if j.CompletedAt != nil {
		end = *j.CompletedAt
	}
	return time.Duration(max(end-j.CreatedAt, 0)) * time.Second
}

// Text returns the prompt, or "" if there is none.
func (j *Job) Text() string {
	if j.Prompt == nil {
		return ""
	}
	return *j.Prompt
}

// VideoOptions describes the video of a new job. The gateway chooses a value for empty fields.
type VideoOptions struct {
	Prompt, Model, Size, Seconds string
	// Reference is the path of a picture that the video begins with.
	Reference string
}

// Create begins a job. It is sent again if the line breaks, and makes one job all
// the same.
func (c *Client) Create(ctx context.Context, w VideoOptions) (*Job, error) {
	b, err := w.body()
	if err != nil {
		return nil, err
	}
	return c.begin(ctx, "/v1/videos", b)
}

// Remix begins a job from a completed one.
func (c *Client) Remix(ctx context.Context, id, prompt string) (*Job, error) {
	data, err := json.Marshal(map[string]string{"prompt": prompt})
	if err != nil {
		return nil, err
	}
	return c.begin(ctx, path(id)+"/remix", &body{"application/json", data})
}

// begin creates a job. The Idempotency-Key lets the call be repeated after a lost connection without a second job.
func (c *Client) begin(ctx context.Context, path string, b *body) (*Job, error) {
	var j Job
	err := c.document(ctx, http.MethodPost, path, b, http.Header{"Idempotency-Key": {rand.Text()}}, &j)
	if err == nil && j.ID == "" {
		err = errForeign
	}
	return &j, err
}

// path returns the path of a job.
func path(id string) string { return "/v1/videos/" + url.PathEscape(id) }

// body returns the body of a creation. It is a multipart form if there is a reference picture, and JSON otherwise.
func (w *VideoOptions) body() (*body, error) {
	fields := [][2]string{{"prompt", w.Prompt}, {"model", w.Model}, {"size", w.Size}, {"seconds", w.Seconds}}
	if w.Reference != "" {
		return w.multipart(fields)
	}
	doc := map[string]string{}
	for _, f := range fields {
		if f[1] != "" {
			doc[f[0]] = f[1]
		}
	}
	data, err := json.Marshal(doc)
	return &body{"application/json", data}, err
}

// maxReference bounds the picture.
const maxReference = 20 << 20

// multipart returns the body with the reference picture. It is built in memory, because a repeated call sends it
// again.
func (w *VideoOptions) multipart(fields [][2]string) (*body, error) {
	info, err := os.Stat(w.Reference)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxReference:
		return nil, fmt.Errorf("%s: a reference is a picture of at most %d MiB", w.Reference, maxReference>>20)
	}
	picture, err := os.ReadFile(w.Reference)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	m := multipart.NewWriter(&buf)
	for _, f := range fields {
		if f[1] == "" {
			continue
		}
		if err := m.WriteField(f[0], f[1]); err != nil {
			return nil, err
		}
	}
	part, err := m.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition("input_reference", filepath.Base(w.Reference))},
		"Content-Type":        {http.DetectContentType(picture)}})
	if err != nil {
		return nil, err
	}
	if _, err := part.Write(picture); err != nil {
		return nil, err
	}
	if err := m.Close(); err != nil {
		return nil, err
	}
	return &body{m.FormDataContentType(), buf.Bytes()}, nil
}

// Get returns the job in its present state.
func (c *Client) Get(ctx context.Context, id string) (*Job, error) {
	var j Job
	err := c.document(ctx, http.MethodGet, path(id), nil, nil, &j)
	if err == nil && j.ID == "" {
		err = errForeign
	}
	return &j, err
}

// Page is a page of a list of jobs.
type Page struct {
	Object  string  `json:"object"`
	Data    []Job   `json:"data"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// Which selects a page of the list of jobs, for List.
type Which struct {
	Limit int
	After string
	Order string // asc or desc, "": desc
}

// List lists jobs.
func (c *Client) List(ctx context.Context, w Which) (*Page, error) {
	q := url.Values{"limit": {strconv.Itoa(w.Limit)}}
	if w.After != "" {
		q.Set("after", w.After)
	}
	if w.Order != "" {
		q.Set("order", w.Order)
	}
	var p Page
	err := c.document(ctx, http.MethodGet, "/v1/videos?"+q.Encode(), nil, nil, &p)
	if err == nil && p.Object != "list" {
		err = errForeign
	}
	return &p, err
}

// Unfinished returns the jobs that have not ended, of the newest 1000. Older ones are not looked at, because each
// hundred of jobs takes a request.
func (c *Client) Unfinished(ctx context.Context) ([]Job, error) {
	var found []Job
	which := Which{Limit: 100}
	for range 10 {
		page, err := c.List(ctx, which)
		if err != nil {
			return nil, err
		}
		for _, j := range page.Data {
			if !j.Final() {
				found = append(found, j)
			}
		}
		if !page.HasMore || page.LastID == nil {
			break
		}
		which.After = *page.LastID
	}
	return found, nil
}

// Cost returns the charge for a finished job in micro-dollars; ok is false if it
// cost nothing or the gateway has no receipt.
func (c *Client) Cost(ctx context.Context, id string) (micros int64, ok bool) {
	var receipt struct {
		Charged *int64 `json:"charged"`
	}
	err := c.documentOnce(ctx, http.MethodGet, "/v1/receipts/"+url.PathEscape(id), nil, nil, &receipt)
	if err != nil || receipt.Charged == nil {
		return 0, false
	}
	return *receipt.Charged, true
}
