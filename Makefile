# `make` lists what there is, from the comments behind the targets.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GO      ?= go
BAZEL   ?= $(shell command -v bazel || tools/airgap/setup -print)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
CMD     := aether.internal/agent/internal/cmd
LDFLAGS := -s -w -X $(CMD).version=$(VERSION) -X $(CMD).commit=$(COMMIT) \
           -X aether.internal/agent/internal/router/cmd.version=$(VERSION) -X main.version=$(VERSION)
# Without the tag gRPC brings html/template for a debugging page, and with it 4 MB.
TAGS    := grpcnotrace
BIN     ?= bin/

.PHONY: help build images test unit docker real cluster demo bench soak fuzz lint fmt envoy clean

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | while IFS='	' read -r target what; do printf '  %-8s %s\n' "$$target" "$$what"; done

build: ## the binaries, into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags "$(LDFLAGS)" -o $(BIN) ./agent/cmd/...

images: ## container images, by Bazel, into bazel-bin/images
	$(BAZEL) build //images/...

test: ## all checks and tests, as CI runs them; as root it installs what is missing
	tools/test

unit: ## the tests that put no load on a real Envoy, with the race detector
	tools/test unit

docker: ## the tests of the images, in a Docker engine
	tools/test docker

real: ## the tests on a real Envoy under load
	tools/test real

cluster: ## the charts on a real Kubernetes node, as root
	tools/test cluster

demo: ## hot restarts of a real Envoy under load, watched, in about a minute
	$(GO) run ./test/demo

bench: ## handoff times and costs, side by side with Envoy restarted by hand
	$(GO) run ./test/bench

soak: ## a thousand handoffs under load: nothing may grow; half an hour
	$(GO) run ./test/soak

fuzz: ## each fuzz target for FUZZTIME (30s), one after the other
	tools/fuzz

lint: ## formatting, tidiness, staticcheck, vulnerabilities
	tools/test lint

fmt: ## format all Go, BUILD and .bzl files
	$(GO) tool -modfile=tools/lint/go.mod buildifier -r .
	gofmt -w $$(find . -name '*.go' -not -path './out/*' -not -path './.git/*')

envoy: ## get the pinned Envoy and print its path
	@$(GO) run ./tools/envoy

clean: ## remove what was built and measured; the Envoy cache stays
	rm -rf bin out
