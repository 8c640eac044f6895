package main

import (
	"net/http"

	actors "stagedoor/actors/embeddings"
	"stagedoor/http/embeddings"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/sandbox"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
)

// tasks returns the handlers of requests to models that are not about text and share routes with those that are.
func (g *gateway) tasks(env *dialogue.Env, simulator *sandbox.Model) map[shapes.Task]http.HandlerFunc {
	return map[shapes.Task]http.HandlerFunc{shapes.Embed: embeddings.Handler(embeddings.Options{
		Logger: g.logger, Env: env, Auth: g.auth, Dialects: registry.Embeddings, Catalog: g.runtime.Catalog,
		Requests: actors.New(g.runtime.Engine(), env, registry.Embeddings, simulator.Embed),
		Limits:   g.runtime.Keys(), Ledger: g.runtime.Ledger(), Attach: g.attach,
		Flow: g.flow, Recorder: g.runtime.Text().Recorder(),
	})}
}
