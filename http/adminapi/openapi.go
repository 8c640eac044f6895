package adminapi

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// buildDescription returns the OpenAPI 3.1 description of routes as JSON.
func buildDescription(routes []route) []byte {
	s := schemas{}
	paths := map[string]map[string]any{}
	for i := range routes {
		rt := &routes[i]
		if paths[Prefix+rt.path] == nil {
			paths[Prefix+rt.path] = map[string]any{}
		}
		paths[Prefix+rt.path][strings.ToLower(rt.method)] = s.operation(rt)
	}
	paths[descriptionPath] = map[string]any{"get": map[string]any{"operationId": "describe",
		"summary": "This description", "security": []any{},
		"responses": map[string]any{"200": content("The description", map[string]any{"type": "object"})}}}
	failure := s.of(Failure{})
	doc := map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "Stagedoor administration", "version": "1",
			"description": "Money is in whole micro-dollars, and times are in UTC. To read a list, repeat the " +
				"request with after=next until next is null."},
		"security": []any{map[string]any{"token": []any{}}},
		"paths":    paths,
		"components": map[string]any{
			"schemas": map[string]any(s),
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer",
				"description": "the admin token"}},
			"responses": map[string]any{"Failure": content("The request failed and changed nothing", failure)},
		},
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err) // cannot happen: the document consists of maps, lists and strings
	}
	return b
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// operation returns the OpenAPI operation of a route.
func (s schemas) operation(rt *route) map[string]any {
	failure := map[string]any{"$ref": "#/components/responses/Failure"}
	op := map[string]any{
		"operationId": rt.name, "summary": rt.summary, "tags": []string{rt.group},
		"responses": map[string]any{strconv.Itoa(rt.status): content(http.StatusText(rt.status), s.of(rt.out)),
			"default": failure},
	}
	params := []any{}
	for _, m := range placeholder.FindAllStringSubmatch(rt.path, -1) {
		kind := map[string]any{"type": "string"}
		// Users, apps and groups are numbered. All other ids are texts.
		if m[1] == "id" && (rt.group == "users" || rt.group == "apps" || rt.group == "groups") {
			kind = map[string]any{"type": "integer", "minimum": 1}
		}
		params = append(params, map[string]any{"name": m[1], "in": "path", "required": true, "schema": kind})
	}
	for _, p := range rt.query {
		params = append(params, p.describe("query"))
	}
	for _, p := range rt.header {
		params = append(params, p.describe("header"))
	}
	if len(params) > 0 {
		op["parameters"] = params
	}
	if rt.in != nil {
		op["requestBody"] = map[string]any{"required": rt.in != Empty{}, "content": media(s.of(rt.in))}
	}
	return op
}

// describe returns the OpenAPI parameter. in is "query" or "header".
func (p *param) describe(in string) map[string]any {
	schema := map[string]any{"type": "string"}
	if p.integer {
		schema["type"] = "integer"
	}
	if p.enum != nil {
		schema["enum"] = p.enum
	}
	return map[string]any{"name": p.name, "in": in, "description": p.doc, "schema": schema}
}

// content returns an OpenAPI response with a JSON body.
func content(what string, schema any) map[string]any {
	return map[string]any{"description": what, "content": media(schema)}
}

// media returns the content of an OpenAPI body that is JSON.
func media(schema any) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": schema}}
}
