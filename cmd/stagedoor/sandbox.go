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

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/http/server"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/sandbox/job"
	"stagedoor/providers/sandbox/media"
	"stagedoor/providers/shapes/registry"
)

// sandboxCommand returns "stagedoor sandbox", which serves the simulator as a provider of its own. The same
// simulator also runs inside the gateway, as a provider of the shape sandbox. This command is for tests of a
// gateway over a real network.
func (a *app) sandboxCommand() *cobra.Command {
	var listen, pace string
	var jobTime time.Duration
	c := &cobra.Command{
		Use: "sandbox", Short: "Serve the simulator over HTTP, in every upstream shape", Args: cli.NoArgs,
		Long: `Serve the simulator over HTTP in every upstream shape, as a provider for a gateway, a
client or a load test. It accepts any key.

Text: below /v1 chat/completions, responses, completions and messages, below
/v1beta models/{model}:generateContent and :streamGenerateContent.
Embeddings: /v1/embeddings, and below /v1beta models/{model}:embedContent and
:batchEmbedContents.
Pictures: /v1/images/generations and edits; /generate, /edit, /remix, /reframe,
/describe and /upscale of the image vendor, with /v1/ideogram-v3/... beside
them.
Videos: /v1/videos with everything below it; models/{model}:predictLongRunning,
operations and files below /v1beta. An Idempotency-Key is honoured.
GET /sandbox/jobs counts submissions, polls and downloads of every job.

The header x-sandbox or the prompt selects faults, for example
[sandbox: delay=2s cut=1]:

  delay=2s  status=429  retry-after=5s  error  cut  stall  garbage  drip
  pace=max  tokens=20  refuse
        for text; error, cut, stall and garbage take =N tokens
  block  unsafe
        moderation refuses the request, or withholds the picture
  job=30s  fail  block=50  freeze  vanish  expire=10s
        how long a video takes and how it ends; fail, block, freeze and vanish
        take =PERCENT of its progress; expire is when its content goes
  busy-polls=N  cut-polls=N  cut-downloads=N
        the first polls answer 503, the next ones or the first downloads break`,
		RunE: func(c *cobra.Command, _ []string) error { return a.serveSandbox(c.Context(), listen, pace, jobTime) },
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8090", "`address` to listen on")
	c.Flags().StringVar(&pace, "pace", "", "tokens per second of a stream, or max (default 50)")
	c.Flags().DurationVar(&jobTime, "job-time", job.DefaultTime, "`time` until a video is completed")
	cli.FromEnvironment(c.Flags(), "listen", "pace", "job-time")
	cli.CompleteWords(c, "pace", "10", "50", "max")
	return c
}

// serveSandbox serves the simulator until a signal. It does not drain: its clients are tests and gateways, and a
// connection that breaks is one of the faults that they must handle.
func (a *app) serveSandbox(ctx context.Context, listen, pace string, jobTime time.Duration) error {
	m, err := sandboxModel(pace)
	if err != nil {
		return err
	}
	// A longer job would fail at the deadline of the gateway, which is a day at most (videos.deadline).
	if jobTime <= 0 || jobTime > job.Longest {
		return fmt.Errorf("%w: --job-time %s: use more than 0 and at most %s", cli.ErrUsage, jobTime, job.Longest)
	}
	jobs := &job.Engine{Now: time.Now, Time: jobTime}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	listeners, err := server.Listen(ctx, []string{listen})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "the sandbox is listening on http://%s\n", listeners[0].Addr())
	serve := m.EmbedHandler(registry.Embeddings, media.Handler(m, jobs, m.Handler(registry.All)))
	srv := &http.Server{Handler: serve, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(listeners[0]); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// sandboxModel returns a simulator with the pace of streams that a flag gives.
func sandboxModel(pace string) (*sandbox.Model, error) {
	m := &sandbox.Model{Env: newEnv(nil, nil)}
	if pace == "" {
		return m, nil
	}
	script, err := sandbox.ParseScript(sandbox.Script{}, "pace="+pace, "")
	if err != nil {
		return nil, fmt.Errorf("%w: --pace %s: use tokens a second or max", cli.ErrUsage, strconv.Quote(pace))
	}
	m.Base = script
	return m, nil
}
