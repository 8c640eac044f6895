package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/http/server"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/shapes/registry"
)

func (a *app) sandboxCommand() *cobra.Command {
	var listen, pace string
	c := &cobra.Command{
		Use: "sandbox", Short: "Serve the model simulator over HTTP, in every upstream shape", Args: noArgs,
		Long: `Serve the model simulator over HTTP in every upstream shape, as a provider to
point a gateway, a client or a load test at. It takes any key.

Below /v1 lie chat/completions, responses, completions and messages, below
/v1beta models/{model}:generateContent and :streamGenerateContent. Faults are
asked for in the header x-sandbox or in the prompt, for example
[sandbox: delay=2s], status=429, error, cut, stall, garbage, drip, pace=max.`,
		RunE: func(c *cobra.Command, _ []string) error { return a.serveSandbox(c.Context(), listen, pace) },
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8090", "`address` to listen on")
	c.Flags().StringVar(&pace, "pace", "", "tokens a second of a stream, or max (default 50)")
	complete(c, "pace", "10", "50", "max")
	return c
}

func (a *app) serveSandbox(ctx context.Context, listen, pace string) error {
	m, err := sandboxModel(pace)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	listeners, err := server.Listen(ctx, []string{listen})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "the sandbox is listening on http://%s\n", listeners[0].Addr())
	srv := &http.Server{Handler: m.Handler(registry.All), ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(listeners[0]); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func sandboxModel(pace string) (*sandbox.Model, error) {
	m := &sandbox.Model{Env: newEnv(nil)}
	if pace == "" {
		return m, nil
	}
	script, err := sandbox.ParseScript(sandbox.Script{}, "pace="+pace, "")
	if err != nil {
		return nil, fmt.Errorf("%w: --pace %s: use tokens a second or max", errUsage, strconv.Quote(pace))
	}
	m.Base = script
	return m, nil
}
