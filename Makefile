# `make` does what CI does; `make help` lists what else there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := test

VERSION  ?=
LDFLAGS  := -s -w $(if $(VERSION),-X main.version=$(VERSION))
ARGS     ?=
ALSO     ?=
FUZZTIME ?= 10s
BENCH    ?= .
CYCLES   ?= 200
ROUNDS   ?= 20
SEED     ?= 0
SIZE     ?= 1048576
ONLY     ?=
MUTANTS  ?= .
JOBS     ?= 5
PROGRAM  := bin/test/stagedoor
CLIENTS  := test/oauth/js test/sdk/js
# Side by side in `make test`. The first one needs only Go, so it compiles while the last ones wait for Chromium and
# the npm packages to be installed. ALSO are suites beside them: .ci/run names those that are left out here, because
# they take long to compile or download much.
SUITES   := test-plain test-program live oauth looks-short flow sdk $(ALSO)
# Packages in which goroutines share most and which import little. The race detector has the standard library and all
# that is imported compiled a second time and makes tests several times slower, so CI uses it for these; `make race` for
# all.
RACE     := actors/(kept|kit|throttle)|state(/share)?|http/(overload|sse)|providers/upstream
# A third-party computation that shares nothing. Instrumented, it takes most of some suites' time.
NORACE   := -gcflags=golang.org/x/crypto/argon2=-race=0
# The compiler takes a third less processor time if it collects garbage rarely, a tenth less without debug information,
# and a quarter to a third less if it does not inline functions, which is left out for the runtime and for a package
# whose test counts an allocation that inlining saves. Programs that tests look at keep Go's defaults of garbage
# collection. As in a release, nothing is compiled with cgo. Scripts that compile have the same FLAGS, because with
# others the standard library and all that is imported would be compiled a second time.
FAST     := all=-l runtime/...= internal/...= sync/...= stagedoor/providers/jsonw=
FLAGS    := CGO_ENABLED=0 GOFLAGS='$(strip $(GOFLAGS) $(FAST:%="-gcflags=% -dwarf=false"))'
COMPILE  := GOGC=400 GOMEMLIMIT=2GiB $(FLAGS)
# Linking takes a seventh less without symbols for debuggers.
SMALL    := -ldflags='-s -w'
# Each test program is run through .ci/tools, which installs Postgres while others are compiled.
DATABASE := "$(CURDIR)/.ci/tools" database
DEFAULTS := -exec '$(DATABASE) env -u GOGC -u GOMEMLIMIT'
# Packages whose tests wait for minutes.
WAITING  := stagedoor/cmd/stagedoor stagedoor/state/journal/postgres
# Tests that -short shortens, among them all property tests: their files and names.
LONG     := grep -rlE 'testing\.Short\(\)|rapid\.Check' --include=*_test.go actors cmd http providers state
NAMES    := awk '/^func / { name = $$2; sub(/\(.*/, "", name) } /testing\.Short\(\)|rapid\.Check|rounds\(\)/ { print name }'
SOURCES  := find . -name node_modules -prune -o -name '*.go' -print

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/stagedoor (VERSION=v1.2.3 to name it)
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/stagedoor ./cmd/stagedoor

.PHONY: release
release: ## archives, packages, install.sh and SHA256SUMS in bin/release (VERSION=v1.2.3, STAGEDOOR_DOWNLOADS=https://...)
	deploy/release '$(VERSION)' bin/release

.PHONY: release-check
release-check: ## build the release for this machine twice, apart, compare the bytes and install it
	@.ci/tools release
	deploy/release-check

.PHONY: run
run: build ## start the gateway with the embedded sandbox (ARGS='--config FILE' for more)
	@exec bin/stagedoor serve $(ARGS)

.PHONY: test
test: ## Go tests, browsers and real clients (JOBS=n at a time, ALSO='targets')
	@JOBS=$(JOBS) STAGEDOOR_BINARY='$(CURDIR)/$(PROGRAM)' .ci/suites $(SUITES)

# The Go tests in the short form of those that -short shortens. It begins when the program is built, because two go
# commands would both compile what the program consists of. Tests that wait come first, so that others are compiled
# meanwhile; go tests a package that is named twice once.
.PHONY: test-plain
test-plain: tools-build program ## the Go tests of all packages but test/..., the long ones shortened
	$(COMPILE) go test $(DEFAULTS) -short -p 3 -vet=off $(SMALL) -timeout 25m $(WAITING) \
	  $$(go list ./... | grep -v '^stagedoor/test')

.PHONY: test-race
test-race: tools-build ## the same with the race detector for packages in which goroutines share most
	@$(DATABASE) &
	$(COMPILE) CGO_ENABLED=1 go test -race -short $(NORACE) -exec '$(DATABASE)' -p 3 -vet=off $(SMALL) -timeout 25m \
	  $$(go list ./... | grep -E '^stagedoor/($(RACE))$$')

.PHONY: test-long
test-long: tools program ## the tests that test-plain and test-program shorten or leave out, in full
	$(COMPILE) go test $(DEFAULTS) -vet=off -timeout 0 -run "^($$($(LONG) | xargs $(NAMES) | sort -u | paste -sd '|'))$$" \
	  $$($(LONG) | xargs -n 1 dirname | sort -u | sed 's|^|./|')
	$(COMPILE) go test $(DEFAULTS) -count=1 -vet=off -timeout 0 -run 'CostsWhat|CostWhat|Sizes' ./cmd/stagedoor
	STAGEDOOR_BINARY='$(CURDIR)/$(PROGRAM)' $(COMPILE) go test $(DEFAULTS) -count=1 -vet=off -timeout 0 ./test/...

.PHONY: race
race: tools-build ## the Go tests of all packages with the race detector, in full
	$(COMPILE) CGO_ENABLED=1 go test -race $(NORACE) -exec '$(DATABASE)' -vet=off $(SMALL) -timeout 0 \
	  $$(go list ./... | grep -v '^stagedoor/test')

# None of these results comes from the test cache, which does not see all the files that they look at. test/toyshape
# compiles a program of its own, so test-long runs it.
.PHONY: test-program
test-program: tools program ## the Go tests that look at the running program, the long ones shortened
	$(COMPILE) go test $(DEFAULTS) -short -count=1 -p 3 -vet=off $(SMALL) -timeout 25m \
	  $$(go list ./test/... | grep -v '^stagedoor/test/toyshape$$')

# The program that all suites look at.
.PHONY: program
program:
	@$(COMPILE) .ci/program $(PROGRAM) $(SMALL)

# The npm packages of the clients. None of them needs its install scripts.
.PHONY: clients
clients: tools
	@for dir in $(CLIENTS); do flock "$$dir" sh -c "cd $$dir; [ node_modules/.package-lock.json -nt package-lock.json ] || \
	  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error"; done

.PHONY: test-short
test-short: ## the Go tests without the slow ones and the race detector
	go test -short ./...

.PHONY: sdk
sdk: clients program ## the vendors' own JavaScript clients against the running gateway
	STAGEDOOR_SDK=js test/sdk/run.sh

.PHONY: sdk-go
sdk-go: program ## the vendors' own Go clients against the running gateway
	STAGEDOOR_LONG=1 STAGEDOOR_SDK=go test/sdk/run.sh

.PHONY: telemetry
telemetry: program ## traces, metrics, dashboard and alerts against the collector's own receiver
	cd test/telemetry && $(COMPILE) go test $(DEFAULTS) -count=1 .

.PHONY: oauth
oauth: clients program ## strict OAuth clients and a browser against the running gateway
	$(FLAGS) test/oauth/run.sh

.PHONY: live
live: clients program ## the page of video jobs in a browser, and its commands on a terminal
	test/live/run.sh

.PHONY: flow
flow: clients program ## the pages of what goes on in a browser
	test/flow/run.sh

.PHONY: looks-short
looks-short: clients program
	test/looks/run.sh

.PHONY: looks
looks: clients program ## all pages in both themes, forced colours and on a phone, with pictures of them in bin/looks
	mkdir -p bin/looks
	STAGEDOOR_LOOKS=all STAGEDOOR_SCREENSHOTS='$(CURDIR)/bin/looks' test/looks/run.sh

# The suites run the tests that are declared with variant (test/oauth/js/chromium.js) only with STAGEDOOR_LONG.
.PHONY: browsers
browsers: clients program ## the suites live, oauth, flow and sdk with all their tests
	STAGEDOOR_LONG=1 STAGEDOOR_SDK=js test/sdk/run.sh
	STAGEDOOR_LONG=1 test/live/run.sh
	STAGEDOOR_LONG=1 $(FLAGS) test/oauth/run.sh
	STAGEDOOR_LONG=1 test/flow/run.sh

# Nothing else may run meanwhile, because the time until a page is painted is judged. The program is a release's, since
# that of the suites is slower.
.PHONY: paint
paint: clients build ## bytes of every page and its first paint, below 60 KB and 200 ms (ONLY=pattern of pages)
	STAGEDOOR_BINARY='$(CURDIR)/bin/stagedoor' STAGEDOOR_LOOKS=paint STAGEDOOR_ONLY='$(ONLY)' test/looks/run.sh

.PHONY: agents
agents: tools program ## agents' command line clients and frameworks against strict vendors behind the gateway
	$(FLAGS) test/agents/run.sh

# Most have a short form in CI: test/strict plays agents against the same vendors, cmd/stagedoor has a receiver of
# traces and metrics, test-plain and test-program shorten what test-long runs in full, test-race has some of the packages
# of race, lint-short leaves out tests and what other modules' functions do, looks-short sees the main pages, and live,
# oauth and flow the main ways of users.
.PHONY: before-release
before-release: lint agents pages sdk-go telemetry looks browsers test-long race release-check proxies ## what CI leaves out, one after the other

.PHONY: pages
pages: tools program ## the lines of every page of docs/clients whose client can be installed
	$(FLAGS) test/agents/run.sh pages

.PHONY: proxies
proxies: program ## nginx and Caddy with the configurations of docs/proxy.md in front of the gateway
	@.ci/tools release
	STAGEDOOR_BINARY='$(CURDIR)/$(PROGRAM)' test/proxies/run.sh

.PHONY: soak
soak: ## kill the loaded gateway CYCLES times and look for what is lost (SEED=n repeats)
	go test ./actors/tokens -count=1 -timeout 0 -histories=1000 -races=10000 \
	  -run 'TestHistoriesAreLinearizable|OfMany(Exchanges|Refreshes)|TestNothingWorksAfterTheRevocation|TestRefreshAgainst'
	go test ./test/soak -count=1 -v -timeout 0 -run TestNothingAcknowledgedIsLost \
	  -soak.cycles=$(CYCLES) -soak.seed=$(SEED)

.PHONY: nemesis
nemesis: ## fail the database and the network under two nodes ROUNDS times in each way, and kill and freeze gateways
	@$(DATABASE)
	go test ./test/nemesis -count=1 -v -timeout 0 -nemesis.rounds=$(ROUNDS)
	go test ./actors/tokens -count=1 -v -timeout 0 -run TestHistoriesOfTwoNodes -histories=$$((100 * $(ROUNDS)))
	go test ./cmd/stagedoor -count=1 -v -timeout 0 -timed -run TwoGatewaysServeTogether -revocations=$$((20 * $(ROUNDS)))
	go test ./cmd/stagedoor -count=1 -v -timeout 0 -timed -run 'KilledAndFrozenInTurn|AStandbyTakesOver' -takeovers=$(ROUNDS)
	go test ./cmd/stagedoor -count=1 -v -timeout 0 -run OneOfSeveralGatewaysFails -gateways=3 \
	  -kills=$$((4 * $(ROUNDS))) -freezes=$(ROUNDS) -cuts=$$((4 * $(ROUNDS))) -crashes=$(ROUNDS)

.PHONY: mutants
mutants: ## seed faults one by one and expect the suites to fail (MUTANTS=pattern)
	go test ./test/mutants -count=1 -v -timeout 0 -run TestEveryMutantIsCaught -mutants '$(MUTANTS)'

.PHONY: format
format:
	@unformatted=$$($(SOURCES) | xargs gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi

.PHONY: tidy
tidy: ## whether go.mod names what the program needs, and no more
	go mod tidy -diff

# The checks are a module of their own, so that they are no dependency of the program.
LINTER := mkdir -p bin/test && $(COMPILE) go build -C test/lint $(SMALL) -o '$(CURDIR)/bin/test/lint' . && \
  $(COMPILE) nice bin/test/lint

.PHONY: lint
lint: format tidy ## formatting, tidy, and the checks of vet and staticcheck
	$(LINTER) ./...

.PHONY: lint-short
lint-short: format tidy ## the same, but for tests and what other modules' functions do
	$(LINTER) -short -tests=false $$(go list ./... | grep -v '^stagedoor/test')

.PHONY: fmt
fmt: ## format the Go files
	$(SOURCES) | xargs gofmt -w

.PHONY: docs
docs: ## write docs/configuration.md anew, from the program's own settings
	go run ./cmd/stagedoor config reference > docs/configuration.md.new
	mv docs/configuration.md.new docs/configuration.md

.PHONY: bench
bench: ## Go benchmarks (BENCH=pattern), then the gateway against floors
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...
	go run ./test/bench

.PHONY: cover
cover: ## coverage of the Go tests in coverage.out, its total printed
	go test -coverpkg=./... -coverprofile=coverage.out ./...
	go tool cover -func=coverage.out | tail -n 1

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME each
	@grep -rlE '^func Fuzz' --include=*_test.go . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$$dir"/*_test.go | sed 's/^func //'); do \
	    echo "$$dir $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir"; \
	  done; \
	done

.PHONY: sizes
sizes: ## time and memory of every handler and parser by the size of its input (SIZE=bytes, eight times that too; ONLY='name, form')
	go test ./test/sizes ./cmd/stagedoor -count=1 -v -timeout 0 -run 'CostsWhat|CostWhat' -sizes.bytes=$(SIZE) -sizes.only='$(ONLY)' | grep -v '^=== '

.PHONY: tools
tools: ## install what the tests need besides Go, where that is possible
	@.ci/tools clients

.PHONY: tools-build
tools-build:
	@.ci/tools build

.PHONY: clean
clean: ## remove what was built
	rm -rf bin coverage.out test/*/js/node_modules test/agents/pages/node_modules
