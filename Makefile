# Sluice. `make help` says what there is.

GO        ?= go
BIN       := bin
FUZZTIME  ?= 1m
PKG       ?= ./...
TESTFLAGS ?=
LINT      := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

.PHONY: help build demo test check race e2e page cloud localstack zips short-fuzz bench-module infra-module lint fuzz bench clean go-is-there cc-is-there node-is-there browser-is-there

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: go-is-there ## Build the commands into bin/: sluice, and providersim, which simulates providers
	$(GO) build -o $(BIN)/ ./cmd/...

demo: build ## Build everything and run examples/ against simulated providers (about a minute)
	@examples/demo.sh

test: check race e2e page cloud short-fuzz bench-module infra-module ## Everything that must hold: format, vet, all tests with the race detector, short fuzzing

check: go-is-there ## gofmt and go vet
	@files=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go')); \
		test -z "$$files" || { echo "not formatted (gofmt -w FILE):"; echo "$$files"; exit 1; }
	$(GO) vet ./...

race: go-is-there cc-is-there ## Tests with the race detector; PKG=./internal/core/run/... for a part
	@command -v python3 >/dev/null || echo "note: without python3, the test that examples/*.csv are what the scripts there write is skipped"
	$(GO) test -race -timeout 25m $(TESTFLAGS) $$($(GO) list $(PKG) | grep -v /e2e/)

# By itself: it holds the built programs against the clock, and other tests would take the processor away from them.
e2e: go-is-there ## The built programs over real sockets: the demo, kills, limits, outages, memory (about two minutes)
	$(GO) test -timeout 15m $(TESTFLAGS) ./e2e/laptop

page: go-is-there browser-is-there ## The page in a real browser, without a window (about two minutes)
	$(GO) test -timeout 10m $(TESTFLAGS) ./e2e/page

cloud: go-is-there node-is-there ## Deploys to an emulator of AWS, and runs the demo and more there (about ten minutes the first time)
	$(GO) test -timeout 30m $(TESTFLAGS) ./e2e/cloud

localstack: go-is-there node-is-there ## The cloud suite and the adapters' suites on LocalStack, which needs Docker
	@docker info >/dev/null 2>&1 || { echo "make localstack needs a running Docker; make cloud does the same without it, on another emulator." >&2; exit 1; }
	docker compose -f e2e/localstack/compose.yaml up --detach --wait
	status=0; \
	SLUICE_TEST_ENDPOINT=http://127.0.0.1:4566 $(GO) test $(TESTFLAGS) ./internal/dynamo ./internal/objects || status=1; \
	AWS_ENDPOINT_URL=http://127.0.0.1:4566 SLUICE_E2E_HOST=host.docker.internal $(GO) test -timeout 30m $(TESTFLAGS) ./e2e/cloud || status=1; \
	docker compose -f e2e/localstack/compose.yaml down; exit $$status

zips: go-is-there ## Build the functions for deployment into build/
	functions/build.sh

short-fuzz: go-is-there ## Each fuzz target for three seconds
	@$(MAKE) --no-print-directory fuzz FUZZTIME=3s

fuzz: go-is-there ## Each fuzz target for a minute, or FUZZTIME=10m; PKG=./internal/core/intake for a part
	@grep -rlE '^func Fuzz' --include='*_test.go' $$($(GO) list -f '{{.Dir}}' $(PKG)) | xargs -n 1 dirname | sort -u | while read -r dir; do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$$dir"/*_test.go | cut -c 6-); do \
			echo "fuzz $${dir#$(CURDIR)/} $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null | grep -vE '^fuzz: (elapsed|.*baseline)' ; \
		done; \
	done

bench-module: go-is-there ## Vet, build and test the comparison with peers (its own module)
	cd bench && $(GO) vet ./... && $(GO) build -o /dev/null ./... && $(GO) test $(TESTFLAGS) ./...

infra-module: go-is-there ## Vet and test the cloud deployment's template (its own module; the first build takes minutes)
	cd infra/cdk && $(GO) vet . && CDK_VALIDATION=false $(GO) test $(TESTFLAGS) .

bench: go-is-there ## Durable calls beside DBOS, River and go-workflows (about two minutes)
	cd bench && $(GO) run . durable

lint: go-is-there ## golangci-lint, built from source (the first time takes some minutes)
	$(GO) run $(LINT) run ./...

clean: ## Remove what was built (bin/) and what the demo left (build/); never a .sluice folder
	rm -rf $(BIN) build

go-is-there:
	@command -v $(GO) >/dev/null || { echo "Go is needed, version $(shell sed -n 's/^go //p' go.mod) or newer: https://go.dev/dl" >&2; exit 1; }
	@want=$$(sed -n 's/^go //p' go.mod); have=$$($(GO) env GOVERSION 2>/dev/null) || have=$$(GOTOOLCHAIN=local $(GO) version | cut -d ' ' -f 3); have=$${have#go}; \
		test "$$(printf '%s\n' "$$want" "$${have%% *}" | sort -V | head -n 1)" = "$$want" || \
		{ echo "Go $$want or newer is needed; $(GO) is $$have: https://go.dev/dl" >&2; exit 1; }

cc-is-there:
	@test "$$($(GO) env CGO_ENABLED)" = 1 && command -v "$$($(GO) env CC)" >/dev/null || \
		{ echo "The race detector needs a C compiler ($$($(GO) env CC), with CGO_ENABLED=1)." >&2; exit 1; }

node-is-there:
	@for tool in node npm python3; do command -v $$tool >/dev/null || { echo "$$tool is needed: the emulator of AWS and the CDK command line run on Node.js 20 and Python 3.10, or newer." >&2; exit 1; }; done

browser-is-there:
	@for browser in "$${SLUICE_E2E_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable; do \
		test -n "$$browser" && command -v "$$browser" >/dev/null && exit 0; done; \
		echo "Chromium or Chrome is needed to look at the page (Debian: apt-get install chromium); SLUICE_E2E_BROWSER names one that is not on the path." >&2; exit 1
