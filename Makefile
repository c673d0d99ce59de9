# The two commands a newcomer needs are `make run` and `make test`.
GO ?= go
BIN := bin
.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build bin/berth
	$(GO) build -trimpath -o $(BIN)/berth ./cmd/berth

.PHONY: run
run: build ## Build, then simulate examples/quickstart
	./$(BIN)/berth simulate examples/quickstart

.PHONY: test
test: check kube-test ## Everything CI runs; the first run builds a Kubernetes control plane

.PHONY: check
check: lint unit outoftree scenarios cover ## The root module: lint, tests, scenarios, coverage

# Properties draw the same random cases in every run, so that a failure is due to the
# change that is tested; SEED=0 draws others.
.PHONY: unit
unit: export RAPID_SEED = $(or $(SEED),1)
unit:
	$(GO) test -count=1 -timeout 60m -coverprofile=coverage.out -coverpkg=./cluster,./engine ./...

.PHONY: outoftree
outoftree: ## Build and test the plugins that live in modules of their own, the guide's among them
	cd examples/plugin && $(GO) vet ./... && $(GO) test -count=1 ./...
	cd examples/tutorial && $(GO) vet ./... && $(GO) test -count=1 ./...

# The module kube/ and the control plane share packages of Kubernetes. They are compiled once
# because every command below uses the same flags and kube/go.mod the same versions.
KUBE_FLAGS := $(shell $(GO) env GOFLAGS) -trimpath
kube-build kube-tools kube-cluster kube-test kube-docs e2e-soak e2e-bench helm manifest: export GOFLAGS = $(KUBE_FLAGS)
kube-build kube-tools kube-cluster kube-test kube-docs e2e-soak e2e-bench helm manifest: export CGO_ENABLED = 0

.PHONY: kube-build
kube-build: ## Build the programs of the module kube/ into bin
	cd kube && $(GO) build -o ../$(BIN)/ ./cmd/...

.PHONY: kube-tools
kube-tools: helm ## Build a Kubernetes control plane and helm for tests into bin/kube, once
	GO="$(GO)" hack/kube/build.sh

.PHONY: helm
helm: ## Build bin/kube/helm, once
	GO="$(GO)" hack/helm/build.sh

.PHONY: kube-cluster
kube-cluster: kube-tools ## Run a Kubernetes control plane with simulated nodes (NODES=1, GPUS=8) until it is interrupted
	cd kube && $(GO) run ./hack/cluster -nodes $(or $(NODES),1) -gpus $(or $(GPUS),8)

.PHONY: kube-test
kube-test: kube-tools ## Test the module kube/ on a real control plane
	cd kube && $(GO) vet ./... && $(GO) test -count=1 -timeout 40m ./...

.PHONY: e2e-soak
e2e-soak: kube-tools ## Kill the scheduler 100 times while it binds gangs, compare 3,000 pods with kube-scheduler's filters, run 200 sessions again, inject faults, measure the heap at 50,000 pods, list permissions that are not used
	cd kube && $(GO) test -count=1 -timeout 120m ./internal/intree -run TestDifferential -v -args -pods=3000
	cd kube && $(GO) test -count=1 -timeout 120m ./e2e -run 'TestKilled' -v -args -kills=100
	cd kube && $(GO) test -count=1 -timeout 120m ./internal/ctl -run 'TestSessions' -v -args -sessions=200
	cd kube && $(GO) test -count=1 -timeout 120m ./e2e -run 'TestFaults|TestPaused|TestRestarts|TestNodeDeleted|TestRejected' -v -args -fault-rounds=20
	cd kube && $(GO) test -count=1 -timeout 120m ./e2e -run 'TestHeap' -v -args -heap-pods=10000
	cd kube && $(GO) test -count=1 -timeout 120m ./e2e -v -args -permissions
	cd kube && $(GO) test -count=1 -timeout 120m ./e2e/models -v -args -every-scenario -random-models=1000 -controller-kills=100 -many-models=500 -at-rest=60s -rotation=2m -permissions

.PHONY: e2e-bench
e2e-bench: kube-tools ## Measure bound pods per second of Berth, kube-scheduler and a scheduler without decisions, and how long the admission of a model takes at 5,000 nodes
	cd kube && $(GO) test -count=1 -timeout 120m ./e2e -run '^$$' -bench . -benchtime 1x
	cd kube && $(GO) test -count=1 -timeout 120m ./internal/admission -run '^$$' -bench . -benchtime 1000x

.PHONY: scenarios
scenarios: build ## Run every scenario file
	./$(BIN)/berth verify scenarios

.PHONY: cover
cover: ## Show the coverage of cluster and engine; fails below 90 %
	@$(GO) tool cover -func=coverage.out | awk '/^total:/ {print "coverage of cluster and engine: " $$3; if ($$3+0 < 90) exit 1}'

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) tool -modfile=hack/tools/go.mod staticcheck ./...

.PHONY: vuln
vuln: ## Look for known vulnerabilities (needs the online database)
	$(GO) tool -modfile=hack/tools/go.mod govulncheck ./...

.PHONY: bench
bench: ## Measure the engine and compare with the recorded run, or with BASE=<commit>; docs/performance.md explains it
	$(GO) run ./hack/bench $(if $(BASE),-base '$(BASE)') $(if $(ONLY),-only '$(ONLY)')

.PHONY: bench-record
bench-record: ## Record a run of the benchmarks, with which make bench compares
	$(GO) run ./hack/bench -record

.PHONY: oracle
oracle: ## Compare the engine with brute force on small clusters; docs/oracle.md explains the table
	$(GO) test ./internal/verify/oracle -run Oracle -v -count=1 -oracle.cases=$(or $(CASES),5000) -timeout 60m

.PHONY: soak
soak: ## Run 600,000 random steps (STEPS=600000); docs/soak.md says what is checked
	$(GO) run ./hack/soak -steps $(or $(STEPS),600000)

.PHONY: fuzz
fuzz: ## Fuzz every decoder for a while (FUZZTIME=30s each)
	hack/fuzz.sh $(or $(FUZZTIME),30s)

.PHONY: docs
docs: build ## Generate docs/reference
	$(GO) run ./hack/reference

.PHONY: kube-docs
kube-docs: ## Generate the pages of docs/reference about the module kube/
	cd kube && $(GO) run ./hack/reference

.PHONY: crd
crd: ## Generate kube/config/crd from the Go types
	cd kube && $(GO) run ./hack/crd

.PHONY: manifest
manifest: helm ## Generate what is derived from charts/berth: copies of definitions, deploy/berth.yaml, pages of docs/reference
	cd kube && $(GO) run ./hack/chart

# DOCKER may be podman or nerdctl. PLATFORMS needs a builder that makes images for several
# platforms; without it, the image is for the platform of this machine.
DOCKER ?= docker
IMAGE ?= ghcr.io/berth-project/berth
VERSION ?= $(shell git describe --tags --always --dirty)

.PHONY: image
image: ## Build the image IMAGE:VERSION with the programs of a cluster (PLATFORMS=linux/amd64,linux/arm64)
	$(DOCKER) build $(if $(PLATFORMS),--platform $(PLATFORMS)) \
		--build-arg VERSION=$(VERSION) --build-arg COMMIT=$$(git rev-parse HEAD) -t $(IMAGE):$(VERSION) .

.PHONY: dist
dist: ## Build the archives of a release into dist/, with checksums and bills of materials
	GO=$(GO) hack/dist/dist.sh

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN) dist coverage.out
