package docs

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"stagedoor/test/harness"
)

const hi = `"messages":[{"role":"user","content":"Hello! [sandbox: tokens=3]"}]`

// calls are requests for all operations but a few, which TestRepliesAreAsDescribed names.
var calls = []call{
	{id: "getHealth"}, {id: "getReadiness"}, {id: "getAuthorizationServer"}, {id: "getDescription"},
	{id: "getAuthorizationServer", method: "POST", status: 405},
	{id: "listModels"}, {id: "getModel", path: "/v1/models/sandbox"},
	{id: "listGeminiModels"}, {id: "getGeminiModel", path: "/v1beta/models/sandbox"},
	{id: "createChatCompletion", body: `{"model":"priced","logprobs":true,` + hi + `}`},
	{id: "getReceipt", path: "/v1/receipts/<createChatCompletion.request>"},
	{id: "createChatCompletion",
		body: `{"model":"sandbox","stream":true,"stream_options":{"include_usage":true},` + hi + `}`},
	{id: "createChatCompletion", body: `{"model":"sandbox","tools":[{"type":"function","function":{"name":"f",
		"parameters":{"type":"object"}}}],"tool_choice":"required",` + hi + `}`},
	{id: "createChatCompletion", body: `{"model":"sandbox","n":0,` + hi + `}`, status: 400},
	{id: "createChatCompletion", body: `{`, status: 400},
	{id: "createChatCompletion",
		body:   `{"model":"sandbox","messages":[{"role":"user","content":"[sandbox: status=503]"}]}`,
		status: 503},
	{id: "createChatCompletion", body: `{}`, header: map[string]string{"Authorization": "Bearer wrong"}, status: 401},
	{id: "createMessage", body: `{"model":"sandbox","max_tokens":20,` + hi + `}`},
	{id: "createMessage", body: `{"model":"sandbox","max_tokens":20,"stream":true,` + hi + `}`},
	{id: "createMessage", body: `{"model":"sandbox","max_tokens":-1,` + hi + `}`, status: 400},
	{id: "countMessageTokens", body: `{"model":"sandbox",` + hi + `}`},
	{id: "createCompletion", body: `{"model":"sandbox","prompt":"Hello! [sandbox: tokens=3]","logprobs":2}`},
	{id: "createCompletion", body: `{"model":"sandbox","prompt":"Hello! [sandbox: tokens=3]","stream":true}`},
	{id: "generateContent", path: "/v1beta/models/sandbox:generateContent", body: gemini},
	{id: "streamGenerateContent", path: "/v1beta/models/sandbox:streamGenerateContent", body: gemini},
	{id: "streamGenerateContent", path: "/v1beta/models/sandbox:streamGenerateContent?alt=sse", body: gemini},
	{id: "generateContent", path: "/v1beta/models/sandbox:generateContent", body: `{"contents":[]}`, status: 400},
	{id: "countTokens", path: "/v1beta/models/sandbox:countTokens", body: gemini},
	{id: "embedContent", path: "/v1beta/models/sandbox:embedContent", body: `{"content":{"parts":[{"text":"a"}]}}`},
	{id: "batchEmbedContents", path: "/v1beta/models/sandbox:batchEmbedContents",
		body: `{"requests":[{"model":"models/sandbox","content":{"parts":[{"text":"a"}]}}]}`},
	{id: "translate", body: `{"model":"sandbox",` + hi + `}`},
	{id: "createEmbeddings", body: `{"model":"sandbox","input":"a","dimensions":2}`},
	{id: "createEmbeddings", body: `{"model":"sandbox","input":["a"],"encoding_format":"base64"}`},

	{id: "createResponse", body: `{"model":"sandbox","stream":true,"input":"Hello! [sandbox: tokens=3]"}`,
		header: map[string]string{"X-On-Disconnect": "detach"}},
	{id: "resumeRequest", path: "/v1/requests/<createResponse.request>/events"},
	{id: "resumeRequest", path: "/v1/requests/none/events", status: 404},
	{id: "createResponse", body: `{"model":"sandbox","input":"Hello! [sandbox: tokens=3]"}`},
	{id: "getResponse", path: "/v1/responses/<createResponse.id>"},
	{id: "listInputItems", path: "/v1/responses/<createResponse.id>/input_items"},
	{id: "countInputTokens", body: `{"model":"sandbox","input":"Hello!"}`},
	{id: "compactConversation", body: `{"model":"sandbox","input":"Hello!"}`},
	{id: "deleteResponse", path: "/v1/responses/<createResponse.id>"},
	{id: "getResponse", path: "/v1/responses/<createResponse.id>", status: 404},
	{id: "createResponse", body: `{"model":"sandbox","background":true,"input":"Hello! [sandbox: tokens=3]"}`},
	{id: "cancelResponse", path: "/v1/responses/<createResponse.id>/cancel"},
	{id: "createConversation", body: `{"metadata":{"a":"b"},"items":[{"role":"user","content":"Hello!"}]}`},
	{id: "getConversation", path: "/v1/conversations/<createConversation.id>"},
	{id: "updateConversation", path: "/v1/conversations/<createConversation.id>", body: `{"metadata":{"a":"c"}}`},
	{id: "addConversationItems", path: "/v1/conversations/<createConversation.id>/items",
		body: `{"items":[{"role":"user","content":"Hello!"}]}`},
	{id: "listConversationItems", path: "/v1/conversations/<createConversation.id>/items"},
	{id: "getConversationItem", path: "/v1/conversations/<createConversation.id>/items/<addConversationItems.last_id>"},
	{id: "deleteConversationItem",
		path: "/v1/conversations/<createConversation.id>/items/<addConversationItems.last_id>"},
	{id: "deleteConversation", path: "/v1/conversations/<createConversation.id>"},
	{id: "getConversation", path: "/v1/conversations/<createConversation.id>", status: 404},

	{id: "createImage", body: `{"model":"gen-image-1","prompt":"a boat"}`},
	{id: "createImage", body: `{"model":"gen-image-1","prompt":"a boat","stream":true,"partial_images":1}`},
	{id: "createImage", body: `{"model":"legacy-image-3","prompt":"a boat"}`},
	{id: "getContent", path: "<createImage.url>"},
	{id: "editImage", form: true, body: `{"model":"gen-image-1","prompt":"a boat","image":"(a picture)"}`},
	{id: "imagegenGenerate", body: `{"image_request":{"prompt":"a boat"}}`},
	{id: "imagegenGenerate", body: `{"image_request":{"prompt":"a boat","num_images":9}}`, status: 400},
	{id: "imagegenV3Generate", form: true, body: `{"prompt":"a boat"}`},
	{id: "imagegenDescribe", form: true, body: `{"image_file":"(a picture)"}`},
	{id: "imagegenEdit", form: true,
		body: `{"image_file":"(a picture)","mask":"(a picture)","prompt":"a boat","model":"V_2"}`},
	{id: "imagegenV3Edit", form: true, body: `{"image":"(a picture)","mask":"(a picture)","prompt":"a boat"}`},
	{id: "imagegenUpscale", form: true, body: `{"image_file":"(a picture)","image_request":"{}"}`},
	{id: "imagegenRemix", form: true, body: `{"image_file":"(a picture)","image_request":"{\"prompt\":\"a boat\"}"}`},
	{id: "imagegenReframe", form: true, body: `{"image_file":"(a picture)","resolution":"1024x1024","model":"V_2"}`},
	{id: "imagegenV3Remix", form: true, body: `{"image":"(a picture)","prompt":"a boat"}`},
	{id: "imagegenV3Reframe", form: true, body: `{"image":"(a picture)","resolution":"1024x1024"}`},
	{id: "imagegenV3ReplaceBackground", form: true, body: `{"image":"(a picture)","prompt":"a boat"}`},

	{id: "CreateVideo", body: `{"model":"sora-2-pro","prompt":"a boat [sandbox: job=1ms]","size":"1920x1080"}`},
	{id: "CreateVideo", body: `{"model":"sora-2","prompt":"a boat [sandbox: job=1ms]","seconds":"4"}`},
	{id: "CreateVideo", body: `{"model":"sora-2","prompt":"a boat [sandbox: job=1ms]","seconds":"5"}`, status: 400},
	{id: "WatchVideo", path: "/v1/videos/<CreateVideo.id>/events"},
	{id: "GetVideo", path: "/v1/videos/<CreateVideo.id>?wait=5s"},
	{id: "ListVideos", path: "/v1/videos?limit=1"},
	{id: "GetVideoContent", path: "/v1/videos/<CreateVideo.id>/content"},
	{id: "CreateVideoRemix", path: "/v1/videos/<CreateVideo.id>/remix", body: `{"prompt":"a ship"}`},
	{id: "CreateVideoEdit", body: `{"prompt":"a ship","video":{"id":"<CreateVideo.id>"}}`},
	{id: "CreateVideoExtension", body: `{"prompt":"a ship","seconds":"4","video":{"id":"<CreateVideo.id>"}}`},
	{id: "DeleteVideo", path: "/v1/videos/<CreateVideo.id>"},
	{id: "GetVideo", path: "/v1/videos/<CreateVideo.id>", status: 404},

	{id: "registerApp", body: `{}`, status: 401},
	{id: "registerApp", header: map[string]string{"Authorization": "Bearer <developer>"},
		body: `{"name":"Weather","redirect_uri":"http://127.0.0.1:9/callback"}`},
}

// oauthCalls need the app that calls registered, and the code to which a user consented.
var oauthCalls = []call{
	{id: "authorize", path: authorize},
	{id: "authorize", path: "/api/oauth2/authorize", status: 400},
	{id: "createToken", urlencoded: true, body: "grant_type=authorization_code&code=wrong", status: 401},
	{id: "createToken", urlencoded: true, header: map[string]string{"Authorization": "Basic <client>"},
		body: "grant_type=authorization_code&code=<code>&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback"},
	{id: "getUserInfo", status: 401},
	{id: "getUserInfo", header: map[string]string{"Authorization": "Bearer <createToken.access_token>"}},
	{id: "getTopUp", header: map[string]string{"Authorization": "Bearer <createToken.access_token>"}},
	{id: "introspectToken", urlencoded: true, header: map[string]string{"Authorization": "Basic <client>"},
		body: "token=<createToken.access_token>"},
	{id: "revokeToken", urlencoded: true, header: map[string]string{"Authorization": "Basic <client>"},
		body: "token=<createToken.access_token>"},
}

const authorize = "/api/oauth2/authorize?response_type=code&state=s&scope=profile%20balance&auto_authorize=true" +
	"&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&client_id=<client_id>"

const gemini = `{"contents":[{"role":"user","parts":[{"text":"Hello! [sandbox: tokens=3]"}]}]}`

// TestRepliesAreAsDescribed drives every operation and checks each reply, stream and error against its described type.
func TestRepliesAreAsDescribed(t *testing.T) {
	d := describe(t)
	d.stagedoor(t, "correct horse battery", "users", "create", "anna", "--password-stdin")
	developer, _, _ := strings.Cut(d.stagedoor(t, "", "users", "developer-token", "anna"), "\n")
	earlier := map[string]string{"developer": developer}
	for _, c := range calls {
		d.drive(t, c, earlier)
	}
	var app struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(earlier["registerApp.data"]), &app); err != nil {
		t.Fatal(err)
	}
	earlier["client_id"] = app.ClientID
	earlier["client"] = base64.StdEncoding.EncodeToString([]byte(app.ClientID + ":" + app.ClientSecret))
	earlier["code"] = d.consent(t, app.ClientID)
	for _, c := range oauthCalls {
		d.drive(t, c, earlier)
	}
	d.converse(t, "connectResponses",
		`{"type":"response.create","model":"sandbox","input":"Hello! [sandbox: tokens=3]"}`, "response.completed")
	d.converse(t, "ConnectVideos", `{"type":"subscribe","ids":"all"}`, "ready")
	d.converse(t, "ConnectVideos", `{"type":"subscribe"}`, "error")
	for id := range d.operations {
		if !d.driven[id] && id != "WatchVideos" { // its stream does not end, and has the events of WatchVideo
			t.Errorf("%s was not driven", id)
		}
	}
}

// stagedoor runs a command beside the gateway and returns what it prints.
func (d *description) stagedoor(t *testing.T, in string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), harness.Binary(t), args...)
	c.Dir, c.Stdin = d.directory, strings.NewReader(in+"\n")
	c.Env = append(os.Environ(), "STAGEDOOR_DATA="+filepath.Join(d.directory, "data"))
	out, err := c.Output()
	if err != nil {
		t.Fatal(args, err)
	}
	return string(out)
}

// consent signs a user in, as a browser does, and returns the code with which the app is called back.
func (d *description) consent(t *testing.T, app string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := http.Client{Jar: jar, CheckRedirect: func(q *http.Request, _ []*http.Request) error {
		if q.URL.Host == "127.0.0.1:9" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	r, err := browser.Get(d.address + strings.ReplaceAll(authorize, "<client_id>", app))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	page, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	find := func(expression string) string {
		m := regexp.MustCompile(expression).FindSubmatch(page)
		if m == nil {
			t.Fatalf("the page has no %s: %s", expression, shortened(string(page)))
		}
		return string(m[1])
	}
	r, err = browser.PostForm(d.address+find(`action="([^"]*)"`), url.Values{
		"id": {find(`name="id" value="([^"]*)"`)}, "token": {find(`name="token" value="([^"]*)"`)},
		"username": {"anna"}, "password": {"correct horse battery"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	callback, err := r.Location()
	if err != nil {
		t.Fatal(r.Status, err)
	}
	return callback.Query().Get("code")
}

// converse sends a message over a WebSocket and checks the messages that follow, up to one of the type last.
func (d *description) converse(t *testing.T, id, message, last string) {
	t.Helper()
	o := d.operations[id]
	if err := d.check(o.Socket.Client, []byte(message)); err != nil {
		t.Error(err)
	}
	c, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(d.address, "http")+o.path,
		http.Header{"Authorization": {"Bearer sd-example-key-of-the-documents"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		t.Fatal(err)
	}
	for kind := ""; kind != last; {
		_, event, err := c.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.check(o.Socket.Server, event); err != nil {
			t.Errorf("%s: %v\n%s", id, err, event)
		}
		var of struct{ Type string }
		if err := json.Unmarshal(event, &of); err != nil {
			t.Fatal(err)
		}
		kind = of.Type
	}
	d.driven[id] = true
}
