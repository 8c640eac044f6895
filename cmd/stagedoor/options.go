package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/datadir"
)

// overrides are the flags that stand above the file.
type overrides struct {
	file      string
	listen    []string
	data      string
	logLevel  string
	logFormat string
	grace     *time.Duration // nil: not given
	// kept has the changes of pages and the API if data is memory; nil: there are none.
	kept atomic.Pointer[layer]
	// newCatalog is set for the command that replaces the list of models on disk, so that a broken one does not stop
	// it.
	newCatalog bool
}

// flags adds the flags of serve. The environment may give each of them, because containers are configured that way.
func (o *overrides) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVarP(&o.file, "config", "c", "", "configuration `file`; without one the embedded sandbox answers")
	f.StringSliceVar(&o.listen, "listen", nil, "`address` to listen on, host:port; may be repeated")
	f.StringVar(&o.data, "data", "", "`directory` of the durable state, or memory for none")
	f.StringVar(&o.logLevel, "log-level", "", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "", "text or json")
	f.Var((*graceFlag)(o), "grace", "time for streams to finish after SIGTERM")
	cli.FromEnvironment(f, "config", "listen", "data", "log-level", "log-format", "grace")
}

// graceFlag is --grace, for which 0s is not the same as nothing.
type graceFlag overrides

// Set implements pflag.Value.
func (g *graceFlag) Set(text string) error {
	d, err := cli.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("expected a duration such as 20s or 5m")
	}
	g.grace = &d
	return nil
}

// String implements pflag.Value.
func (g *graceFlag) String() string {
	if g.grace == nil {
		return ""
	}
	return g.grace.String()
}

// Type implements pflag.Value.
func (g *graceFlag) Type() string { return "duration" }

// load reads the file, if there is one, and applies the flags.
func (o *overrides) load(env func(string) (string, bool)) (*config.Config, error) {
	c := config.Default()
	if o.file != "" {
		text, err := config.Read(o.file)
		if err != nil {
			return nil, err
		}
		return o.parse(text, "", env)
	}
	c.Cluster.Fill(env) // where there is no file
	o.apply(c)
	return c, nil
}

// parse returns the configuration of a text with the flags applied to it. data is the data directory if there is no
// file that could name it.
func (o *overrides) parse(text []byte, data string, env func(string) (string, bool)) (*config.Config, error) {
	parse, name, written := config.Parse, o.file, text
	if o.newCatalog {
		parse = config.ParseForCatalog
	}
	if name == "" {
		name = "changes of pages"
		text = append([]byte("data: "+strconv.Quote(data)+"\n"), text...)
	}
	c, err := parse(name, text, env)
	if err == nil {
		c.Text = written
		o.apply(c)
	}
	return c, err
}

// apply applies the flags.
func (o *overrides) apply(c *config.Config) {
	if len(o.listen) > 0 {
		c.Listen = o.listen
	}
	if o.data != "" {
		c.Data = o.data
	}
	if o.logLevel != "" {
		c.Log.Level = o.logLevel
	}
	if o.logFormat != "" {
		c.Log.Format = o.logFormat
	}
	if o.grace != nil {
		c.Shutdown.Grace = config.Duration(*o.grace)
	}
}

// loadWithData loads the configuration as the gateway runs with it. Unlike load, it applies the changes that were made
// on pages and through the API, which are kept in the data directory, and it fills in the default data directory if
// neither the file nor a flag names one.
func (o *overrides) loadWithData(env func(string) (string, bool)) (*config.Config, error) {
	read, err := o.readConfiguration(env)
	if err != nil {
		return nil, err
	}
	if len(read.layer.Edits) == 0 {
		c, err := o.load(env)
		if err != nil {
			return nil, err
		}
		if c.Text = read.file; o.file == "" {
			c.Data = read.data
		}
		return c, nil
	}
	text, err := read.text()
	if err != nil {
		return nil, fmt.Errorf("%s does not fit the configuration file any more: %w",
			filepath.Join(read.data, layerName), err)
	}
	return o.parse(text, read.data, env)
}

// dataDirectory returns the data directory that the flag or else text, the text of the configuration file, names. It is
// the default one if there is neither.
func (o *overrides) dataDirectory(text []byte, env func(string) (string, bool)) (string, error) {
	switch {
	case o.data != "":
		return o.data, nil
	case o.file == "":
		return datadir.Default(env)
	}
	return config.DataOf(text, env), nil
}

// logger makes the logger the configuration asks for. It writes to buffer.
func logger(c config.Log, buffer *logBuffer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, fmt.Errorf("%w: log level %q is not known, use debug, info, warn or error", cli.ErrUsage, c.Level)
	}
	o := &slog.HandlerOptions{Level: level}
	var h slog.Handler
	switch c.Format {
	case "json":
		h = slog.NewJSONHandler(buffer, o)
	case "text":
		h = slog.NewTextHandler(buffer, o)
	default:
		return nil, fmt.Errorf("%w: log format %q is not known, use text or json", cli.ErrUsage, c.Format)
	}
	buffer.lost = func(count int) { slog.New(h).Warn("log lines dropped: the log was not read", "count", count) }
	return slog.New(redacting{urgent{h, buffer}}), nil
}
