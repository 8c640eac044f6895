// Package nodes connects the gateways that serve over one database: each has a listener for the others, and asks them
// for what they have in memory alone: streams and requests in flight. What is to be shared for good is in the state.
//
// # Usage
//
//	cluster, err := nodes.New(options)
//	cluster.Handle("GET /things/{id}", serveThing)   // what this gateway answers
//	go cluster.Serve(ctx, listener)
//	res, err := cluster.Open(ctx, peer, "/things/1", nil)
//
// A nil Cluster has no other gateways.
//
// # Security
//
// Connections are TLS 1.3. Both sides prove that they have the secret of the installation, from which the one key of
// all gateways is derived, before a request is read. No key of a client, no token and no cookie opens the listener.
//
// # Limits
//
// A gateway accepts maxConnections. Replies that last as long as a request take at most maxRelays of them, with a share
// for each owner, on the gateway that sends (Relay) and on the one that reads (First, FollowResponse). A gateway reads
// no bodies, and gives each piece of a reply writeTime to be accepted. A request names the process that it is meant for,
// so that another one, which has got its address, refuses it.
package nodes
