// Package datadir gives commands access to a data directory: through the gateway that runs on it, or directly if no
// gateway does. Commands use it so that a change acts at once on a running gateway and is kept in the files
// otherwise.
//
// # Usage
//
// A command calls AddFlags when it is made and one of the methods of Flags when it runs. Use is the
// usual one: it takes a function for a running gateway and one for a state that nothing else has
// open, and calls exactly one of them. OpenStore is for the gateway itself.
//
// # Errors
//
// Unavailable marks what passes by itself, such as a directory that another process has open. The
// program ends with EX_TEMPFAIL after it, so that scripts and service managers try again. Any other
// error is a mistake of the command line or a fault of the data.
package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/http/admin"
	"stagedoor/http/auth"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
)

// Flags name the data directory that a group of commands works on. Make them with AddFlags.
type Flags struct {
	file, data string
	env        func(string) (string, bool)
}

// AddFlags adds --config and --data to a command and its subcommands.
func AddFlags(c *cobra.Command, a *cli.App) *Flags {
	f := &Flags{env: a.Env}
	set := c.PersistentFlags()
	set.StringVarP(&f.file, "config", "c", "", "configuration `file` that names the data directory")
	set.StringVar(&f.data, "data", "", "data `directory` of the gateway (default $XDG_DATA_HOME/stagedoor)")
	cli.FromEnvironment(set, "config", "data")
	err := errors.Join(c.MarkPersistentFlagFilename("config", "yaml", "yml"), c.MarkPersistentFlagDirname("data"))
	if err != nil {
		panic(err) // both flags are defined above
	}
	return f
}

// Path returns the data directory that the flags or the configuration file name, or the default one. It need not exist.
// It returns an error if it is the default one, no gateway runs on it, and one runs elsewhere on this machine. It also
// returns an error for "memory", which has no directory that a command could change.
func (f *Flags) Path() (string, error) {
	data := f.data
	switch {
	case data == "" && f.file == "":
		var err error
		if data, err = Default(f.env); err != nil {
			return "", err
		}
		if err = f.rejectOther(data); err != nil {
			return "", err
		}
	case data == "":
		c, err := config.Load(f.file, f.env)
		if err != nil {
			return "", err
		}
		data = c.Data
	}
	if data == "memory" {
		return "", fmt.Errorf("%w: a gateway with data: memory keeps no keys; "+
			"give --data DIRECTORY, or write keys into the configuration", cli.ErrUsage)
	}
	return data, nil
}

// RequireExisting returns an error if the data directory does not exist. Only commands that create something may
// create the directory.
func (f *Flags) RequireExisting() error {
	data, err := f.Path()
	if err != nil {
		return err
	}
	if _, err := os.Stat(data); err != nil {
		return Unavailable(fmt.Errorf("there is no data directory %s: "+
			"name it with --data, or make a first key with keys create", data))
	}
	return nil
}

// Dial returns the data directory and a client of the gateway that runs on it. The client is nil if no gateway does.
func (f *Flags) Dial() (data string, running *admin.Client, err error) {
	if data, err = f.Path(); err != nil {
		return "", nil, err
	}
	socket, err := Socket(data)
	if err != nil {
		return "", nil, err
	}
	running, err = admin.Dial(socket)
	if noGateway(err) {
		return data, nil, nil
	}
	return data, running, err
}

// noGateway reports whether err of admin.Dial says that no gateway serves the socket.
func noGateway(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// Use calls running with the gateway that runs on the data directory. If no gateway does, it opens the directory, calls
// stopped with its state and closes it. The errors of running and stopped are returned as they are. A directory that
// another process has open, or that is damaged, is Unavailable.
func (f *Flags) Use(running func(*admin.Client) error, stopped func(*state.State) error) error {
	data, client, err := f.Dial()
	if err != nil {
		return err
	}
	if client != nil {
		return running(client)
	}
	cluster, err := f.commandNode()
	if err != nil {
		return err
	}
	store, err := OpenStore(data, cluster, "")
	if err != nil {
		return err
	}
	s, err := schema.Open(store, time.Now)
	if err != nil {
		return errors.Join(Unavailable(err), store.Close())
	}
	err = stopped(s)
	s.Close()
	return errors.Join(err, store.Close())
}

// AsCommand returns a context for changes that a command makes to the data directory while no gateway runs. The log of
// changes then names the command as the actor.
func AsCommand(ctx context.Context) context.Context {
	return state.WithActor(ctx, state.Actor{Kind: state.ActorCommand, Via: auth.ViaCommand})
}

// Socket returns the path of the socket at which a gateway on a data directory can be reached. A path that is too long
// for a socket is Unavailable, because the system would report only an invalid argument.
func Socket(data string) (string, error) {
	// sun_path holds 108 bytes on Linux and 104 elsewhere, with a zero at the end.
	const most = 103
	path := filepath.Join(data, admin.SocketName)
	if len(path) > most {
		return "", Unavailable(fmt.Errorf("the path %s is longer than the %d bytes that a socket may have: "+
			"choose a shorter --data", path, most))
	}
	return path, nil
}

// Unavailable marks an error of a data directory that cannot be used. The program ends with EX_TEMPFAIL after it.
func Unavailable(err error) error { return fmt.Errorf("%w: %w", state.ErrUnavailable, err) }

// LockWait bounds the wait for another process to close the data directory. A gateway that is stopping closes it
// within that time.
const LockWait = 2 * time.Second

// OpenStore opens the durable store of a data directory, which it creates if necessary, or a store in memory if data is
// "memory", or the database of a cluster if one is named, in which the version of the program is shown. It waits for
// LockWait while another process has the directory open. The error is a usage error for a combination that makes no
// sense, and Unavailable otherwise.
func OpenStore(data string, cluster config.Cluster, version string) (journal.Store, error) {
	if cluster.Store != "" {
		return openShared(data, cluster, version)
	}
	if data == "memory" {
		return journal.NewMemory(), nil
	}
	store, err := journal.OpenBolt(data, journal.Options{Timeout: LockWait})
	if err != nil {
		return nil, Unavailable(err)
	}
	return store, nil
}
