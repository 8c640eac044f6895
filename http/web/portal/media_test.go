package portal_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/work"
)

// ask sends a request of a script to the portal, and returns the status and the body of the reply.
func (v *visitor) ask(path string) (int, string) {
	r := httptest.NewRequest(http.MethodGet, origin+path, nil)
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	v.handler.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// TestAPageListsOnlyWhatItsUserKeptThere covers the pages of the list, other pages, other users and conversations of
// programs.
func TestAPageListsOnlyWhatItsUserKeptThere(t *testing.T) {
	h := newFixture(t)
	keep := func(id, user, metadata string, age time.Duration) {
		t.Helper()
		c := work.Conversation{ID: id, Owner: state.OwnerOf("", user), Created: time.Now().Add(-age)}
		if _, err := work.PutConversation(t.Context(), h.state, c, []byte(metadata), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 53 {
		keep(fmt.Sprintf("conv_%02d", i), "anna", `{"page":"chat","title":"<b>"}`, time.Duration(i)*time.Second)
		keep(fmt.Sprintf("conv_p%02d", i), "anna", `{}`, time.Duration(i)*time.Second)
	}
	keep("conv_image", "anna", `{"page":"images"}`, time.Hour)
	keep("conv_root", "root", `{"page":"chat"}`, 0)
	anna, root := h.signedIn("anna"), h.signedIn("root")
	list := func(v *visitor, path string) (ids []string, next string) {
		t.Helper()
		status, body := v.ask(path)
		var reply struct {
			Data []struct {
				ID       string
				Metadata map[string]string
			}
			Next string
		}
		if err := json.Unmarshal([]byte(body), &reply); err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		for _, c := range reply.Data {
			ids = append(ids, c.ID)
		}
		return ids, reply.Next
	}
	first, next := list(anna, "/chat/api/conversations?after=")
	rest, end := list(anna, "/chat/api/conversations?after="+next)
	if len(first) != 50 || first[0] != "conv_00" || strings.Join(rest, " ") != "conv_50 conv_51 conv_52" || end != "" {
		t.Errorf("the pages are %v and %v, then %q", first, rest, end)
	}
	if ids, _ := list(anna, "/images/api/conversations"); strings.Join(ids, " ") != "conv_image" {
		t.Errorf("the gallery has %v", ids)
	}
	if ids, _ := list(root, "/chat/api/conversations"); strings.Join(ids, " ") != "conv_root" {
		t.Errorf("another user's list has %v", ids)
	}
	// A place that another user has is no more than a time, and what is none is refused.
	if ids, _ := list(root, "/chat/api/conversations?after="+next); len(ids) != 0 {
		t.Errorf("another user's list has %v", ids)
	}
	if status, body := root.ask("/chat/api/conversations?after=conv_07"); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, body)
	}
}

// TestAListReadsNothingOfConversationsOfPrograms: it finds what a page keeps behind many conversations by one request.
func TestAListReadsNothingOfConversationsOfPrograms(t *testing.T) {
	h := newFixture(t)
	for i := range 501 {
		c := work.Conversation{ID: fmt.Sprintf("conv_%03d", i), Owner: state.OwnerOf("", "anna"),
			Created: time.Now().Add(-time.Duration(i) * time.Second)}
		metadata := `{}`
		if i == 500 {
			metadata = `{"page":"images"}`
		}
		if _, err := work.PutConversation(t.Context(), h.state, c, []byte(metadata), nil); err != nil {
			t.Fatal(err)
		}
	}
	_, body := h.signedIn("anna").ask("/images/api/conversations")
	if !strings.Contains(body, `"conv_500"`) || strings.Contains(body, "next") {
		t.Errorf("the list is %s", body)
	}
}

func TestThePriceOfAVideoIsShownToThoseWhoMayMakeIt(t *testing.T) {
	h := newFixture(t)
	anna := h.signedIn("anna")
	for path, want := range map[string]string{
		"model=film&seconds=8":        `200 {"price":800000}`,
		"model=film&seconds=-1":       `400 seconds`,
		"model=film":                  `400 seconds`,
		"model=no-such-one&seconds=4": `404 no-such-one`,
	} {
		status, body := anna.ask("/live/price?" + path)
		code, text, _ := strings.Cut(want, " ")
		if fmt.Sprint(status) != code || !strings.Contains(body, text) {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
	}
}

// A remix is made by the provider of its source, also if another one is cheaper.
func TestThePriceOfARemixIsThatOfTheProviderThatMadeTheVideo(t *testing.T) {
	h := newFixture(t)
	h.putVideo("video_1", "anna", "reel-1", "simulator", work.VideoCompleted)
	h.putVideo("video_2", "anna", "reel-1", "gone", work.VideoCompleted)
	h.putVideo("video_3", "root", "reel-1", "simulator", work.VideoCompleted)
	anna := h.signedIn("anna")
	for id, want := range map[string]string{
		"video_1": `200 {"price":1600000}`, "video_2": `503 not available`, "video_3": `404 video_3`,
	} {
		status, body := anna.ask("/live/price?remix=" + id)
		code, text, _ := strings.Cut(want, " ")
		if fmt.Sprint(status) != code || !strings.Contains(body, text) {
			t.Errorf("%s: %d %s, want %s", id, status, body, want)
		}
	}
}

// putVideo stores a video of four seconds.
func (h *fixture) putVideo(id, user, model, provider string, phase work.VideoPhase) {
	h.t.Helper()
	v := work.Video{ID: id, Owner: state.OwnerOf("", user), Key: "k", Operation: "create", Model: model,
		UpstreamModel: "m", Provider: provider, Prompt: "p", Size: "1280x720", Seconds: 4, Phase: phase,
		Created: time.Now(), Deadline: time.Now().Add(time.Hour)}
	_, err := state.Do(h.t.Context(), h.state, func(tx *state.Tx) (work.Video, error) { return work.PutVideo(tx, v) })
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestAUserSeesThePositionsOfTheirOwnVideosOnly(t *testing.T) {
	h := newFixture(t)
	put := func(id, user, provider string, phase work.VideoPhase) { h.putVideo(id, user, "film", provider, phase) }
	put("video_1", "root", "a", work.VideoAccepted)
	put("video_2", "anna", "a", work.VideoInProgress)
	put("video_3", "anna", "a", work.VideoAccepted)
	put("video_4", "root", "b", work.VideoAccepted)
	put("video_5", "anna", "a", work.VideoSubmitting)
	if _, body := h.signedIn("anna").ask("/live/queue"); body != `{"positions":{"video_3":2,"video_5":3}}` {
		t.Errorf("the positions are %s", body)
	}
}
