package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
)

// checkWithin limits the time of a health check.
const checkWithin = 5 * time.Second

// healthcheckCommand returns "stagedoor healthcheck", which images without a shell use as their health check.
func (a *app) healthcheckCommand() *cobra.Command {
	var o overrides
	var ready bool
	c := &cobra.Command{
		Use: "healthcheck", Short: "Check the gateway on this machine", Args: cli.NoArgs,
		Long: `Check whether the gateway on this machine is alive, or with --ready whether it accepts
requests. It is meant for health checks of containers, whose image has no other program.
The exit code is 0 if the check passes, and 1 if not.`,
		Example: `  stagedoor healthcheck --listen :8080
  stagedoor healthcheck --config stagedoor.yaml --ready`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := o.load(a.Env)
			if err != nil {
				return err
			}
			path := "/healthz"
			if ready {
				path = "/readyz"
			}
			return a.healthcheck(c.Context(), cfg, path)
		},
	}
	c.Flags().StringVarP(&o.file, "config", "c", "", "configuration `file` of the gateway")
	c.Flags().StringSliceVar(&o.listen, "listen", nil, "`address` of the gateway, host:port")
	c.Flags().BoolVar(&ready, "ready", false, "check readiness instead of liveness")
	cli.FromEnvironment(c.Flags(), "config", "listen")
	cli.CompleteFiles(c, "config", "yaml", "yml")
	return c
}

// healthcheck asks the first address of listen for path and prints the reply. The error says that the gateway did not
// answer or is not well.
func (a *app) healthcheck(ctx context.Context, c *config.Config, path string) error {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	address, err := net.ResolveTCPAddr("tcp", c.Listen[0])
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, baseURL(c, address)+path, nil)
	if err != nil {
		return err
	}
	// The certificate is for the name that clients use, not for this address.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	r, err := client.Do(q)
	if err != nil {
		return fmt.Errorf("the gateway does not answer: %w", err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err != nil {
		return err
	}
	// Container engines keep the output of the last checks, so the conditions of /readyz can be read there.
	if _, err := a.Out.Write(append(bytes.TrimSpace(text), '\n')); err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return errors.New("the gateway answered " + r.Status)
	}
	return nil
}
