// Package flow tests what operators see of a running gateway, and do to it: requests
// under way, their end by hand, paused providers, spans without a collector, and the
// socket that pages hear it from. run.sh does the same with a browser.
//
//	go test ./test/flow
//	go test ./test/flow -run '^$' -bench Watched -benchtime 1x     9,500 streams
package flow
