package datadir

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/state/journal"
	"stagedoor/state/journal/postgres"
	"stagedoor/state/requestlog/pglog"
)

// joinWait bounds the wait for the database, and for a gateway that was killed to be no longer live.
const joinWait = 30 * time.Second

// openShared opens the store of a cluster as the node that the configuration names.
func openShared(data string, cluster config.Cluster, version string) (journal.Store, error) {
	if data == "memory" {
		return nil, fmt.Errorf("%w: --data memory does not go with cluster.store", cli.ErrUsage)
	}
	var err error
	if cluster.Node == "" {
		if cluster.Node, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("%w: set cluster.node: %w", cli.ErrUsage, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinWait)
	defer cancel()
	store, err := postgres.Open(ctx, cluster.Store.Reveal(), postgres.Options{
		Node: cluster.Node, Version: version, Standby: cluster.Standby, Address: cluster.Address,
		Several: cluster.Serve == config.ServeAll,
	})
	if err != nil {
		return nil, Unavailable(err)
	}
	return store, nil
}

// Shared has the methods of a store in a database that only a gateway needs.
type Shared interface {
	// Standby reports whether the gateway is a stand-by, which Await ends.
	Standby() bool
	// Await returns when the gateway may change the state.
	Await(ctx context.Context) error
	// Leaving returns a channel that is closed when an operator wants the gateway to end.
	Leaving() <-chan struct{}
	// Silent returns the time since the database last answered.
	Silent() time.Duration
	// Files returns the pictures and uploads in the database, which the caller closes.
	Files(ctx context.Context) (*postgres.Files, error)
	// The log of requests can be beside the state.
	pglog.Database
}

// SharedStore returns a store of OpenStore as Shared, or nil if it is not in a database.
func SharedStore(store journal.Store) Shared {
	shared, _ := store.(Shared)
	return shared
}

// commandNode returns the cluster that the flags, the configuration file or the environment name. A command takes part
// in it under a name of its own, because a gateway of the same name would be fenced.
func (f *Flags) commandNode() (config.Cluster, error) {
	var cluster config.Cluster
	if f.file != "" {
		c, err := config.Load(f.file, f.env)
		if err != nil {
			return cluster, err
		}
		cluster = c.Cluster
	}
	cluster.Fill(f.env)
	// A command neither waits nor serves beside gateways.
	cluster.Standby, cluster.Serve, cluster.Address = false, "", ""
	// Commands in containers often have the same process id, and sometimes the same host name.
	host, _ := os.Hostname()
	cluster.Node = fmt.Sprintf("command-%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
	return cluster, nil
}

// OpenShared opens the store of the cluster that the flags, the configuration file or the environment name. It returns
// nil without an error if they name none. It waits a few seconds for a gateway that was killed, and fails while one
// runs.
func (f *Flags) OpenShared() (journal.Store, error) {
	cluster, err := f.commandNode()
	if err != nil || cluster.Store == "" {
		return nil, err
	}
	return openShared("", cluster, "")
}

// OpenMembers returns the nodes of the cluster that the flags, the configuration file or the environment name, without
// joining them. The caller closes it. A missing cluster is a usage error, and a database that cannot be reached is
// Unavailable.
func (f *Flags) OpenMembers(ctx context.Context) (*postgres.Members, error) {
	cluster, err := f.commandNode()
	if err != nil {
		return nil, err
	}
	if cluster.Store == "" {
		return nil, fmt.Errorf("%w: name a database with cluster.store or $STAGEDOOR_CLUSTER_STORE", cli.ErrUsage)
	}
	members, err := postgres.OpenMembers(ctx, cluster.Store.Reveal())
	if err != nil {
		return nil, Unavailable(err)
	}
	return members, nil
}

// FilesPath returns the data directory, as Path does, for commands that work on the files of a store. It returns an
// error if the state is in a database.
func (f *Flags) FilesPath() (string, error) {
	cluster, err := f.commandNode()
	if err == nil && cluster.Store != "" {
		err = fmt.Errorf("%w: the state is in the database of cluster.store, whose own tools do this", cli.ErrUsage)
	}
	if err != nil {
		return "", err
	}
	return f.Path()
}
