// Package admin serves the control socket, through which the operator's commands reach a running
// gateway. The socket is a file in the data directory, so every process that may open files there
// may use it. It is not served on the network.
//
// # Permission
//
// Whether a process may use the socket is the file's matter: it lies in the data directory, which only the gateway's
// user can enter. Requests over it need no token and are logged as those of the operator.
//
// # Usage
//
// Serve handles requests until its context ends. Besides its own routes (backups, recordings, the admin token) it
// serves the whole administration API, so that commands act on a running gateway as programs do over the network.
// Dial returns an error if no gateway serves the socket, also if its file was left over.
//
// # Files
//
//	admin.go operatorerror.go scopes.go   the socket, its client, and errors for an operator
//	backup.go recording.go token.go       the operations that only the socket has
package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"stagedoor/http/adminapi"
	"stagedoor/http/auth"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/ownership"
)

// SocketName is the name of the socket's file in the data directory.
const SocketName = "control.sock"

// maxBody is the number of bytes that are read of a request or an error.
const maxBody = 1 << 20

// Listen creates the socket at path and replaces one that is left from an earlier process. The caller must hold the
// lock of the data directory, so no other gateway can be using it. Only the user of the process can connect, because
// the socket needs no token. The error is that of the system.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(path, 0o600), ownership.Path(path)); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Serve serves the control socket on l until ctx ends.
func Serve(ctx context.Context, l net.Listener, s *state.State, api *adminapi.API,
	recordings *Recordings, log *slog.Logger) {
	srv := &http.Server{Handler: Handler(s, api, recordings), ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Warn("the control socket failed", "cause", err)
	}
}

// Handler returns the handler of the control socket. It serves the administration API without a
// token, and routes for the commands: POST /keys and /backups, PUT /token, and POST and
// DELETE /recordings/{key} unless recordings is nil.
func Handler(s *state.State, api *adminapi.API, recordings *Recordings) http.Handler {
	mux := http.NewServeMux()
	if recordings != nil {
		recordings.routes(mux, s)
	}
	mux.Handle(adminapi.Prefix+"/", api.Handler())
	mux.HandleFunc("PUT /token", handleSetToken(s))
	mux.HandleFunc("POST /backups", handleBackup(s))
	mux.HandleFunc("POST /keys", func(w http.ResponseWriter, r *http.Request) {
		var k identity.Key
		if err := readBody(r, &k); err != nil {
			writeReply(w, nil, dialogue.Invalid("body", "must be a key"))
			return
		}
		if err := checkScopes(k.Scopes); err != nil {
			writeReply(w, nil, err)
			return
		}
		writeReply(w, k, identity.CreateKeyOfUser(r.Context(), s, k))
	})
	return auth.Acting(state.ActorControlSocket, auth.ViaCommand, mux.ServeHTTP)
}

// readBody decodes the JSON body of r into v. Member names are case-sensitive: "Hash" is not hash.
func readBody(r *http.Request, v any) error {
	return jsonv2.UnmarshalRead(io.LimitReader(r.Body, maxBody), v)
}

// writeReply writes v as JSON, or err in the error envelope.
func writeReply(w http.ResponseWriter, v any, err error) {
	var refusal *operatorError
	switch {
	case errors.As(err, &refusal):
		err = refusal.envelope()
	case errors.Is(err, state.ErrNotFound):
		err = dialogue.NotFound("", "such key")
	case errors.Is(err, state.ErrInvalid), errors.Is(err, state.ErrExists):
		err = dialogue.BadRequest("invalid_value", err.Error())
	}
	if e := adminapi.Unavailable(err); e != nil {
		err = e
	}
	if err != nil {
		envelope.Write(w, envelope.Plain, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// Client sends requests to a running gateway through its control socket.
type Client struct{ http http.Client }

// Dial returns a Client for the gateway that serves the socket at path. It returns an error if no
// gateway is running.
func Dial(path string) (*Client, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	conn.Close()
	return &Client{http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}}}}, nil
}

// API returns a client of the gateway's administration API.
func (c *Client) API() *adminapi.Client { return adminapi.NewClient(c.http.Transport) }

// AddKey stores a new key. Its user must exist.
func (c *Client) AddKey(ctx context.Context, k identity.Key) error {
	return c.do(ctx, http.MethodPost, "/keys", k, nil)
}

// do sends in as JSON and decodes the reply into out, unless out is nil.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://stagedoor"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 400 {
		return readError(res)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(out)
}

// readError returns the error of a failed response.
func readError(res *http.Response) error {
	var e struct{ Error struct{ Message string } }
	if json.NewDecoder(io.LimitReader(res.Body, maxBody)).Decode(&e) != nil || e.Error.Message == "" {
		return errors.New(res.Status)
	}
	return errors.New(e.Error.Message)
}
