package media_test

import (
	"testing"
	"time"
)

// as is the gateway asked with another key.
func (g *gateway) as(secret string) *gateway {
	other := &gateway{t: g.t, url: g.url}
	other.secret = secret
	return other
}

// TestPicturesThatNobodyPaysForHaveReceipts (decisions, Ledger).
func TestPicturesThatNobodyPaysForHaveReceipts(t *testing.T) {
	g := open(t, answer(200, made(2)))
	userless := g.as("sd-userless")
	made := userless.generate(object{"model": "gen-image-1", "n": 2})
	path := "/v1/receipts/" + made.header.Get("X-Request-Id")
	r := userless.send("GET", path, "", "")
	if made.status != 200 || r.status != 200 || r.get("usage.images").Int() != 2 ||
		r.get("usage.output_tokens").Int() != 20 || r.get("charged").Int() != 0 ||
		r.get("settlement").Str != "none" ||
		r.get("end_reason").Str != "finished" ||
		r.get("model").Str != "gen-image-1" ||
		r.get("provider").Str != "vendor" {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, secret := range []string{"sd-test", "sd-narrow"} {
		g.refused(g.as(secret).send("GET", path, "", ""), 404, "not_found", "request_id")
	}
}

// TestVideosHaveReceipts under the id of the request that began them and under their
// own, whether they cost something or not, before and after they are deleted.
func TestVideosHaveReceipts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, secret, settlement string
		charged                  int64
	}{
		{"paid", "sd-test", "charged", 80_000},
		{"without a user", "sd-userless", "none", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, _ := openStudio(t, 50*time.Millisecond)
			client := g.as(tt.secret)
			began := client.send("POST", "/v1/videos", asJSON, `{"prompt":"a cat","seconds":8,"size":"1280x720"}`)
			id := began.get("id").Str
			client.ended(id)
			check := func() {
				for _, request := range []string{began.header.Get("X-Request-Id"), id} {
					r := client.send("GET", "/v1/receipts/"+request, "", "")
					if r.status != 200 || r.get("request_id").Str != id || r.get("charged").Int() != tt.charged ||
						r.get("settlement").Str != tt.settlement ||
						r.get("usage.seconds").Int() != 8 || r.get("end_reason").Str != "finished" ||
						r.get("model").Str != "video-2" ||
						r.get("provider").Str != "studio" ||
						r.get("ended").Time().IsZero() ||
						r.get("earlier").Exists() {
						t.Errorf("%s: %d %s", request, r.status, r.body)
					}
					g.refused(g.as("sd-other").send("GET", "/v1/receipts/"+request, "", ""), 404, "not_found",
						"request_id")
				}
			}
			check()
			if r := client.send("DELETE", "/v1/videos/"+id, "", ""); r.status != 200 {
				t.Fatalf("%d %s", r.status, r.body)
			}
			check()
		})
	}
}

// TestVideoUnderWayHasNoReceiptYet: what it will cost is not known.
func TestVideoUnderWayHasNoReceiptYet(t *testing.T) {
	t.Parallel()
	g, _ := openStudio(t, time.Hour)
	client := g.as("sd-userless")
	r := client.send("POST", "/v1/videos", asJSON, `{"prompt":"a cat"}`)
	for _, request := range []string{r.header.Get("X-Request-Id"), r.get("id").Str} {
		g.refused(client.send("GET", "/v1/receipts/"+request, "", ""), 404, "not_found", "request_id")
	}
}
