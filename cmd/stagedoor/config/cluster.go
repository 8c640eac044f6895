package config

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"

	"stagedoor/state"
)

// Cluster names a database that keeps the state in place of the data directory.
type Cluster struct {
	Store   Secret `yaml:"store" doc:"URL of the Postgres database that holds the state; default: $STAGEDOOR_CLUSTER_STORE"`
	Node    string `yaml:"node" doc:"name of this gateway in that database; default: the host's name"`
	Serve   string `yaml:"serve" doc:"number of gateways of the cluster that serve: one or all; default: one"`
	Standby bool   `yaml:"standby" doc:"wait while another gateway uses the database, and take over when it ends"`
	Listen  string `yaml:"listen" doc:"address to listen on for the other gateways, with serve: all; default: none"`
	Address string `yaml:"address" doc:"address at which the other gateways reach this one; default: listen"`
	Files   string `yaml:"files" doc:"directory for pictures and uploads that every gateway mounts; default: the database"`
}

// ServeAll is the Cluster.Serve with which several gateways serve at the same time.
const ServeAll = "all"

// clusterStore is the variable that names the database where the file does not. A URL has a password in it, which is
// better not in a file.
const clusterStore = "STAGEDOOR_CLUSTER_STORE"

// Fill sets Store from the environment variable STAGEDOOR_CLUSTER_STORE, unless the file has set it.
func (c *Cluster) Fill(env func(string) (string, bool)) {
	if url, _ := env(clusterStore); c.Store == "" {
		c.Store = Secret(url)
	}
}

// checkCluster checks the settings of a shared database and refuses settings that have no effect with one, because an
// operator who sets backups.dir relies on backups.
func (c *Config) checkCluster(d *decoder) {
	text := c.Cluster.Store.Reveal()
	u, err := url.Parse(text)
	for _, s := range []struct {
		name string
		set  bool
	}{{"node", c.Cluster.Node != ""}, {"files", c.Cluster.Files != ""}, {"standby", c.Cluster.Standby},
		{"serve", c.Cluster.Serve != ""}} {
		if text == "" && s.set { // only the first one is reported (decoder.at)
			d.at("cluster.store", "expected the URL of a database, because cluster.%s is set", s.name)
		}
	}
	switch {
	case text != "" && (err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || !usablePort(u)):
		d.at("cluster.store", "expected a URL that begins with postgres://, with a port of 1 to 65535 if it has one")
	}
	if c.Cluster.Node != "" && state.CheckID(c.Cluster.Node) != nil {
		d.at("cluster.node", "expected up to %d letters, digits and . _ -", state.MaxID)
	}
	switch {
	case c.Cluster.Serve != "" && c.Cluster.Serve != "one" && c.Cluster.Serve != ServeAll:
		d.at("cluster.serve", "expected one or all")
	case c.Cluster.Serve == ServeAll && c.Cluster.Standby:
		d.at("cluster.standby", "expected false, because with cluster.serve: all every gateway serves")
	}
	c.checkNodeAddress(d)
	if text == "" {
		return
	}
	if c.Data == "memory" {
		d.at("data", "expected a directory: with cluster.store it has the files and the socket for commands")
	}
	if c.Backups.Dir != "" {
		d.at("backups.dir", "expected none: with cluster.store the tools of the database make backups")
	}
}

// checkNodeAddress checks where gateways that serve together listen for each other.
func (c *Config) checkNodeAddress(d *decoder) {
	listen, address := c.Cluster.Listen, c.Cluster.Address
	host, _, _ := net.SplitHostPort(cmp.Or(address, listen))
	at, err := netip.ParseAddr(host)
	switch {
	case listen == "" && address != "":
		d.at("cluster.address", "expected none, because cluster.listen is not set")
	case listen == "":
	case c.Cluster.Serve != ServeAll:
		d.at("cluster.listen", "expected none, because without cluster.serve: all one gateway serves at a time")
	case !Address(listen):
		d.at("cluster.listen", "expected host:port, for example 10.0.0.5:7900")
	case address != "" && !Address(address):
		d.at("cluster.address", "expected host:port, for example gw-1.internal:7900")
	case host == "" || err == nil && at.IsUnspecified():
		d.at("cluster.address", "expected the host that the other gateways reach, because cluster.listen names none")
	}
}
