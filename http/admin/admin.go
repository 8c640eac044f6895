// Package admin lets the operator's commands reach a running gateway: a small
// API on a Unix socket in the data directory, for whoever may read that
// directory. It is not served on the network.
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

	"stagedoor/actors/tokens"
	"stagedoor/http/adminapi"
	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// SocketName is the socket's file in the data directory.
const SocketName = "control.sock"

const maxBody = 1 << 20

// Listen opens the socket. The data directory belongs to this process alone
// (the store has locked it), so a socket that is there is a dead one's.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Serve answers on l until ctx ends.
func Serve(
	ctx context.Context, l net.Listener, s *state.State, registry *tokens.Client, api *adminapi.API,
	recordings *Recordings, log *slog.Logger,
) {
	srv := &http.Server{Handler: Handler(s, registry, api, recordings), ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Warn("the control socket failed", "cause", err)
	}
}

// Handler is the API: GET, POST /keys and DELETE /keys/{id}; GET, POST
// /users; POST /apps, /developer-tokens and /backups; PUT /token; POST and
// DELETE /recordings/{key}, unless recordings is nil.
//
// Beside it is the API of administration, for which whoever opens the socket needs
// no token.
func Handler(
	s *state.State, registry *tokens.Client, api *adminapi.API, recordings *Recordings,
) http.Handler {
	mux := http.NewServeMux()
	if recordings != nil {
		recordings.routes(mux)
	}
	mux.Handle(adminapi.Prefix+"/", api.Handler())
	mux.HandleFunc("PUT /token", setToken(s))
	People{registry}.routes(mux)
	mux.HandleFunc("POST /backups", backup(s))
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, identity.ListKeys(s.View(), identity.KeyFilter{}), nil)
	})
	mux.HandleFunc("POST /keys", func(w http.ResponseWriter, r *http.Request) {
		var k identity.Key
		if err := readBody(r, &k); err != nil {
			answer(w, nil, dialogue.Invalid("body", "must be a key"))
			return
		}
		if err := checkScopes(k.Scopes); err != nil {
			answer(w, nil, err)
			return
		}
		answer(w, k, identity.CreateKeyOfUser(r.Context(), s, k))
	})
	mux.HandleFunc("DELETE /keys/{id}", func(w http.ResponseWriter, r *http.Request) {
		k, err := identity.RevokeKey(r.Context(), s, r.PathValue("id"))
		answer(w, k, err)
	})
	return mux
}

// readBody reads the JSON of a request into v. Names are read as they are written: "Hash" is not hash.
func readBody(r *http.Request, v any) error {
	return jsonv2.UnmarshalRead(io.LimitReader(r.Body, maxBody), v)
}

func answer(w http.ResponseWriter, v any, err error) {
	var told *refused
	switch {
	case errors.As(err, &told):
		err = told.envelope()
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

// Client talks to a running gateway.
type Client struct{ http http.Client }

// Dial connects to the gateway that owns a data directory, if one is running.
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

// API is the API of administration of that gateway.
func (c *Client) API() *adminapi.Client { return adminapi.Over(c.http.Transport) }

// Keys lists all keys.
func (c *Client) Keys(ctx context.Context) (keys []identity.Key, err error) {
	return keys, c.do(ctx, http.MethodGet, "/keys", nil, &keys)
}

// AddKey keeps a new key, of a user that there is.
func (c *Client) AddKey(ctx context.Context, k identity.Key) error {
	return c.do(ctx, http.MethodPost, "/keys", k, nil)
}

// RevokeKey ends a key.
func (c *Client) RevokeKey(ctx context.Context, id string) (k identity.Key, err error) {
	return k, c.do(ctx, http.MethodDelete, "/keys/"+id, nil, &k)
}

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

// readError returns the error in a reply.
func readError(res *http.Response) error {
	var e struct{ Error struct{ Message string } }
	if json.NewDecoder(io.LimitReader(res.Body, maxBody)).Decode(&e) != nil || e.Error.Message == "" {
		return errors.New(res.Status)
	}
	return errors.New(e.Error.Message)
}
