// Package telemetry holds the gateway's traces and metrics against the collector's
// own receiver, over gRPC and over HTTP, and docs/grafana.json and docs/alerts.yaml
// against what /metrics really says. It is a module of its own: nothing of the
// collector is the gateway's.
package telemetry
