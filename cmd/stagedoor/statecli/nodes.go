package statecli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	httpflow "stagedoor/http/flow"
	"stagedoor/state/journal"
	"stagedoor/state/journal/postgres"
)

// NodesCommand returns "stagedoor nodes" with its subcommands. They work on the database itself, so that they also help
// with a gateway that does not answer.
func NodesCommand(shared *cli.App) *cobra.Command {
	a := app{shared}
	asJSON := false
	c := &cobra.Command{
		Use: "nodes", Short: "List the gateways of a cluster, and stop or remove one", Args: cli.NoArgs,
		Long: `List the gateways that use the database of cluster.store, with their states:

  live      serves and can change the state
  standby   follows the state, and takes over when the live gateway ends
  silent    has not renewed its lease of five seconds

With cluster.listen, the gateway that runs on this machine asks the others how many
requests they have in flight.`,
	}
	o := datadir.AddFlags(c, a.App)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.withNodes(c.Context(), o, func(_ *postgres.Members, all []journal.Member) error {
			return a.printNodes(all, loads(c.Context(), o), asJSON)
		})
	}
	c.AddCommand(&cobra.Command{
		Use: "leave NAME", Short: "Stop a gateway gracefully, as SIGTERM does",
		Args: cli.ExactArgs(1, "the name of a node"),
		Long: `Stop a gateway gracefully, as SIGTERM does: it accepts no new requests, lets streams
finish and then leaves the cluster, so that a standby takes over at once. The gateway
reads this command within a few seconds.`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.endNode(c.Context(), o, args[0], (*postgres.Members).Leave, "was asked to leave")
		},
	}, &cobra.Command{
		Use: "expel NAME", Short: "Remove a gateway from the cluster at once",
		Args: cli.ExactArgs(1, "the name of a node"),
		Long: `Remove a gateway that is known to be dead, without waiting until its lease expires. It
cannot change the state any more. If it is still alive, it ends with exit code 75.`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.endNode(c.Context(), o, args[0], (*postgres.Members).Expel, "was expelled")
		},
	})
	return c
}

// nodesWait bounds the wait for the database.
const nodesWait = 10 * time.Second

// withNodes calls use with the nodes of the database.
func (a app) withNodes(ctx context.Context, o *datadir.Flags,
	use func(*postgres.Members, []journal.Member) error) error {
	ctx, cancel := context.WithTimeout(ctx, nodesWait)
	defer cancel()
	members, err := o.OpenMembers(ctx)
	if err != nil {
		return err
	}
	defer members.Close()
	all, err := members.List(ctx)
	if err != nil {
		return datadir.Unavailable(err)
	}
	return use(members, all)
}

// printedNode is a node in JSON.
type printedNode struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Epoch   uint64  `json:"epoch"`
	Beat    float64 `json:"last_beat_seconds"`
	Applied uint64  `json:"applied"`
	Version string  `json:"version"`
	Address string  `json:"address"`
	// Answers and InFlight are what the gateway on this machine has just got from it, null if none could ask.
	Answers  *bool `json:"answers"`
	InFlight *int  `json:"in_flight"`
}

// loads asks the gateway on this machine, if there is one, for the requests in flight of all.
func loads(ctx context.Context, o *datadir.Flags) map[string]httpflow.NodeLoad {
	_, running, err := o.Dial()
	if err != nil || running == nil {
		return nil
	}
	var flow httpflow.Active
	if running.API().Do(ctx, http.MethodGet, "/flow", url.Values{"limit": {"1"}}, nil, &flow) != nil {
		return nil
	}
	known := map[string]httpflow.NodeLoad{}
	for _, n := range flow.Load.Nodes {
		known[n.Node] = n
	}
	return known
}

// load describes the requests in flight of a node.
func (n *printedNode) load() string {
	switch {
	case n.Answers == nil:
		return "-"
	case !*n.Answers:
		return "no answer"
	}
	return strconv.Itoa(*n.InFlight)
}

// printNodes prints the nodes as a table or as JSON. known has the figures of those that the gateway on this machine
// reached. A node that is not in it prints "-" or null, which is not the same as a node without requests.
func (a app) printNodes(all []journal.Member, known map[string]httpflow.NodeLoad, asJSON bool) error {
	printed := make([]printedNode, len(all))
	for i, m := range all {
		state := "live"
		switch {
		case !m.Live:
			state = "silent"
		case m.Standby:
			state = "standby"
		}
		printed[i] = printedNode{m.Node, state, m.Epoch, m.Age.Seconds(), uint64(m.LSN), m.Version, m.Address,
			nil, nil}
		if load, ok := known[m.Node]; ok {
			printed[i].Answers = &load.Answers
			if load.Answers {
				printed[i].InFlight = &load.InFlight
			}
		}
	}
	if asJSON {
		return cli.PrintJSON(a.Out, printed)
	}
	return cli.Table(a.Out, "NAME STATE EPOCH BEAT APPLIED IN-FLIGHT VERSION", nil, func(line func(...any)) {
		for i := range printed {
			n := &printed[i]
			line(n.Name, n.State, int64(n.Epoch), fmt.Sprintf("%.1fs ago", n.Beat), int64(n.Applied), n.load(),
				n.Version)
		}
	})
}

// endNode calls end with the node of a name in its present epoch. The epoch keeps the command from ending a gateway
// that started again under the same name since the list was read. done is the word for what has happened to the node,
// for the output.
func (a app) endNode(ctx context.Context, o *datadir.Flags, name string,
	end func(*postgres.Members, context.Context, string, uint64) (bool, error), done string) error {
	return a.withNodes(ctx, o, func(members *postgres.Members, all []journal.Member) error {
		for _, m := range all {
			if m.Node != name {
				continue
			}
			ended, err := end(members, ctx, name, m.Epoch)
			switch {
			case err != nil:
				return datadir.Unavailable(err)
			case !ended:
				return errors.New("the node has just left or begun another epoch: look at stagedoor nodes")
			}
			_, err = fmt.Fprintf(a.Out, "%s %s\n", cli.Printable(name), done)
			return err
		}
		return fmt.Errorf("no node %q uses the database: look at stagedoor nodes", name)
	})
}
