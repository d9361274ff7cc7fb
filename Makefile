# make demo   one host rank and three stand-in FPGAs on this machine
# make quick  lint and short tests of what changed
# make test   everything that has to pass before a change is accepted
# make help   the rest
.DEFAULT_GOAL := build
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

GO    ?= go
VERSION ?= $(shell internal/tools/version.sh)
LDFLAGS := -X github.com/zrlmpi/zrlmpid/internal/version.version=$(VERSION)
TOOLS := $(GO) tool -modfile=$(CURDIR)/internal/tools/go.mod
# Packages without goroutines, or that run programs in C: the race detector only slows them down.
PURE := ./protocol/... ./handshake ./handshake/mpemodel ./handshake/cpumodel ./extended ./daemon/standin/cosim \
  ./mpe/match ./mpe/core ./mpe/coll/... ./mpe/collective ./lib ./lib/gen \
  ./capture ./capture/htmlreport ./capture/pcapng ./capture/perfetto ./capture/vcd \
  ./deploy/wireshark ./examples/apps/... \
  ./internal/integration/hostile ./internal/integration/cosim ./internal/integration/diagnose
# Tests of processes that are killed and of nodes in processes of their own: once, without the race detector.
PROCESSES := ^Test(ProcessIsRestarted|ProcessIsRestartedBesideAnMPE|CollectivesOfDeployedNodes|ProgramCallsLaterThanItsPeerAsks)$$
# Seconds that `make fuzz` gives to each fuzz target.
FUZZTIME ?= 30s
# Programs that `make simulate` makes of each kind.
SEEDS ?= 2000
# What bench-docs reads, and where the Go benchmarks are.
FILE ?= bin/bench/bench.json
BENCH_PACKAGES ?= ./protocol ./extended ./mpe/match ./mpe ./daemon/attach ./metrics ./internal/integration

.PHONY: help build lib pgo compatibility demo test quick lint unit race offload-off without-race fuzz vuln faults search simulate diagnose decided programs mutations soak soak-life soak-paths bench bench-targets goodput goodput-targets bench-docs bench-archive bench-model bench-go bench-compare bench-captures check-config man release release-check reproducible deploy-check chart kubernetes-check clean

help: ## list the targets
	@grep -h -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 18

# Without cgo, the bytes do not depend on a C compiler.
build: export CGO_ENABLED = 0
build: ## build bin/zrlmpid, bin/zrlctl and bin/zrlbench
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/zrlmpid ./cmd/zrlctl
	$(GO) -C lab build -trimpath -ldflags '$(LDFLAGS)' -o ../bin/ ./cmd/zrlbench

lib: export LDFLAGS := $(LDFLAGS)
lib: ## the C library in bin/lib, with headers in bin/include and the compilers bin/zrlmpicc, zrlmpicxx, zrlmpifort (needs a C compiler)
	GO="$(GO)" VERSION="$(VERSION)" ./lib/build.sh bin

pgo: ## lib/default.pgo anew: what the C library spends its time on, for the compiler; on an idle machine
	mkdir -p bin/pgo
	$(GO) test -trimpath ./lib/capi -run '^$$' -bench Call -benchtime 3s -cpuprofile $(CURDIR)/bin/pgo/capi.prof -o /dev/null
	$(GO) test -trimpath ./internal/integration -run '^$$' -bench 'Window|ProcessorTime' -benchtime 2s -cpuprofile $(CURDIR)/bin/pgo/engine.prof -o /dev/null
	$(GO) tool pprof -proto bin/pgo/capi.prof bin/pgo/engine.prof > lib/default.pgo

compatibility: build lib ## existing programs of other MPI libraries with the C library (docs/compatibility.md); some minutes
	./lib/compatibility.sh

demo: build ## ping three stand-in FPGAs over UDP on 127.0.0.1-4, every byte checked
	./deploy/demo.sh

test: lint race offload-off without-race check-config deploy-check vuln demo ## all checks

quick: ## lint, and short tests, of what changed since BASE (default: since main), in under a minute
	GO="$(GO)" BASE="$(BASE)" ./internal/tools/quick.sh

# More memory saves a fifth of the processor time.
lint: export GOGC ?= 200
lint: ## golangci-lint with go vet, the rules of the architecture, retired words, references in documents, all platforms
	$(TOOLS) golangci-lint run ./...
	cd lab && $(TOOLS) golangci-lint run ./...
	$(GO) -C internal/tools test -count=1 ./... # the cache does not know the files that they read
	! git grep -nE '^(<{7}|>{7}) ' # a conflict in a string or a page compiles
	$(GO) -C internal/tools run ./words
	$(GO) -C internal/tools run ./links
	$(GO) -C internal/tools run ./platforms

unit: ## tests, without the race detector
	$(GO) test ./...
	$(GO) -C lab test ./...

# By default, every program with the race detector sleeps for a second before it exits.
race offload-off: export GORACE ?= atexit_sleep_ms=0

# Tests run without vet, which is part of lint. Fuzz targets run on their seeds here.
race: ## tests, with the race detector (needs a C compiler) where the product has goroutines
	$(GO) test -vet=off $(PURE)
	$(GO) test -race -vet=off -skip '$(PROCESSES)' $$($(GO) list ./... | grep -vxF "$$($(GO) list $(PURE))")
	$(GO) test -race -vet=off -run '^TestLive' ./capture
	$(GO) -C lab test -vet=off -p 3 ./... # they wait more than they compute

# The engine is the same: only the transports' own code needs the race detector once more.
offload-off: ## tests of what carries messages, without UDP offload and single copies
	ZRLMPI_OFFLOAD=off ZRLMPI_SINGLE_COPY=off $(GO) test -race -vet=off ./udp ./transport/shm
	ZRLMPI_OFFLOAD=off ZRLMPI_SINGLE_COPY=off $(GO) test -vet=off -skip '$(PROCESSES)|LateCopies|Upstream|DOSA|NextProgram|Hydra' ./node ./mpi ./mpi/job ./internal/integration

without-race: ## tests of what the race detector hides, such as allocations, or is too slow for; 10,000 simulated programs
	$(GO) test -vet=off -run 'Allocations|^Test(ManyRanks|Collectives)$$' ./daemon/attach ./daemon ./lib/capi ./mpe ./mpi ./internal/integration
	$(GO) test -vet=off -run '$(PROCESSES)' ./internal/integration
	$(GO) test -vet=off -run '^TestSimulation' ./mpe/core -seeds 160

fuzz: ## fuzz every target for FUZZTIME
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; \
	  done; done

check-config: build ## parse the configurations that are shipped
	for f in deploy/*.yaml; do case $$f in \
	  *.reference.yaml) ./bin/zrlmpid --config $$f --print-config >/dev/null;; # its TLS files are examples \
	  *) ./bin/zrlmpid --config $$f --check-config;; \
	esac || exit; done

vuln: ## govulncheck; reports if the vulnerability database cannot be reached
	GO="$(GO)" ./internal/tools/vuln.sh

faults: ## every fault of the wire with every stall, and random programs, against zrlmpid and the models of deployed nodes; some minutes
	$(GO) test -count=1 -timeout 60m -run 'Test(Faults|RandomPrograms)$$' -v ./handshake -all-faults -programs 100000

search: ## every schedule of up to 3 faults of the wire, against the state machines and the models of deployed nodes; some minutes
	$(GO) test -count=1 -timeout 60m -run 'TestSearch$$' -v ./handshake ./extended -search-depth 3

simulate: ## random programs on whole engines in simulated time, SEEDS of each kind of cluster and network
	$(GO) test -count=1 -timeout 120m -run TestSimulation -v ./mpe/core -seeds $(SEEDS)

diagnose: ## how often `why` is right: hangs of SEEDS simulated clusters, and with real nodes where there are any; writes the results to docs/reliability.md and docs/data
	$(GO) test -count=1 -timeout 120m -run 'Test(Diagnose|Latency)$$' -v ./internal/integration/diagnose -seeds $(SEEDS) -write
	$(GO) test -count=1 -run 'TestNodes$$' -v ./internal/integration/hangs -write

decided: ## how often `why` is certain where only one cause is possible, in SEEDS simulated clusters; few causes are decidable in fewer than 10000; writes the results to docs/reliability.md
	$(GO) test -count=1 -timeout 120m -run 'TestDecided$$' -v ./internal/integration/diagnose -seeds $(SEEDS) -write

programs: ## programs that end in the middle of each operation, in each way, and the next ones 0, 1 and 3 s later
	ZRLMPI_NEXT_PROGRAM_PAUSES=0s,1s,3s $(GO) test -count=1 -timeout 60m -run 'TestNextProgram$$' -v ./internal/integration

mutations: ## take rules out of the state machines, one at a time: the search or the simulation has to fail without each; some minutes
	$(GO) -C internal/tools run ./mutations

# Messages that `make soak` sends in each case, and the percentages of datagrams that are lost.
MESSAGES ?= 1000000
LOSS ?= 1,5,20

soak: ## MESSAGES through zrlctl impair with each of the percentages LOSS, per profile and transport; a million steps of whole engines; floods of 100,000 messages of every kind
	ZRLMPI_INTEGRITY_MESSAGES=$(MESSAGES) ZRLMPI_INTEGRITY_LOSS=$(LOSS) $(GO) test -count=1 -timeout 300m -run TestIntegrity -v ./internal/integration
	ZRLMPI_DIFFERENTIAL_STEPS=1000000 $(GO) test -count=1 -timeout 30m -race -run TestDifferential ./mpe
	$(GO) test -count=1 -timeout 60m -run 'TestFlood$$' ./lib ./cmd/zrlctl -flood 100000

# How long soak-life takes.
LIFE ?= 1h

soak-life: ## 64 ranks with loss, kills, stops and restarts for LIFE (1h): no leak of memory, descriptors, goroutines, files
	ZRLMPI_LIFE_DURATION=$(LIFE) $(GO) test -count=1 -timeout 24h -run 'TestSoak$$' -v ./internal/integration/life

soak-paths: LIFE = 30m
soak-paths: ## ranks by AF_XDP and by sockets between two hosts whose network changes for LIFE (30m), as root: no wrong bytes, no false success, recovery
	ZRLMPI_PATHS_DURATION=$(LIFE) $(GO) test -count=1 -timeout 24h -run 'TestPaths$$' -v ./internal/integration/life

bench: build ## measure latency, bandwidth, rates and idle use beside the raw limits and other MPI libraries; results in bin/bench
	mkdir -p bin/bench
	./bin/zrlbench --save bin/bench/bench.json --svg bin/bench | tee bin/bench/bench.txt

bench-targets: build ## compare the figures in FILE with the targets of the project
	./bin/zrlbench show $(FILE) --targets

# Where make goodput puts its figures, and what goodput-targets reads: one file or several, separated by commas.
GOODPUT ?= bin/bench/goodput.json

goodput: build ## measure throughput over emulated long and lossy paths, beside TCP CUBIC, as root; results in bin/bench
	mkdir -p bin/bench
	./bin/zrlbench goodput --save $(GOODPUT)

goodput-targets: ## compare the figures in GOODPUT with the targets of the project
	$(GO) -C lab test ./goodput -run '^TestTargetsOfRun$$' -count=1 -v -figures $(abspath $(GOODPUT))

bench-archive: build ## add the figures in FILE, of zrlbench or zrlbench goodput, to the archived runs in lab/results
	./bin/zrlbench archive $(FILE)

bench-docs: build ## put the figures in FILE into lab/results and the table and plots of docs/performance.md
	./bin/zrlbench archive $(FILE) --replace
	./bin/zrlbench show $(FILE) --into docs/performance.md --svg docs/img

# What make bench-model measures, and what it compares the model with.
MODEL ?= bin/bench/model.yaml

bench-model: build ## measure every algorithm of 2 to 16 ranks in at most 5 minutes, and compare zrlbench paper's model with that
	mkdir -p bin/bench
	./bin/zrlbench tune --ranks 2,4,8,16 --max-bytes 512KiB --rounds 5 --limit 5m --output $(MODEL)
	./bin/zrlbench paper scale --compare $(MODEL)

bench-go: ## Go benchmarks: codec, engine, matching, ping between engines and a raw UDP round trip
	$(GO) test -run '^$$' -bench . -benchmem $(BENCH_PACKAGES)
	$(GO) -C lab test -run '^$$' -bench . -benchmem ./sim/...

bench-compare: ## Go benchmarks here and at the revision BASE; with THRESHOLD=5, fail if a median is over 5 % worse
	GO="$(GO)" BASE="$(BASE)" THRESHOLD="$(THRESHOLD)" PACKAGES="$(BENCH_PACKAGES)" ./lab/bench/compare.sh

bench-captures: ## time analyze and tshark on a generated recording
	$(GO) test -run '^$$' -bench BenchmarkAnalyze -benchtime 3x ./capture

# page NAME SECTION FOLDER: the manual page of Markdown on standard input.
page = GO="$(GO)" ./internal/tools/manual.sh $(1) $(2) $(VERSION) >bin/manual/$(3)/$(1).$(2)
man: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
man: export CGO_ENABLED = 0
man: export TZ = UTC
man: ## manual pages and shell completions, into bin/manual
	rm -rf bin/manual
	mkdir -p bin/manual/library
	$(GO) run -trimpath -tags manual -ldflags '$(LDFLAGS)' ./cmd/zrlctl bin/manual
	$(GO) -C lab run -trimpath -tags manual -ldflags '$(LDFLAGS)' ./cmd/zrlbench $(CURDIR)/bin/manual
	cp cmd/zrlmpid/completions/* bin/manual/completions
	$(call page,zrlmpid,8,man) <cmd/zrlmpid/zrlmpid.8.md
	sed 's/^/    /' deploy/zrlmpid.reference.yaml | cat cmd/zrlmpid/zrlmpid.yaml.5.md - | $(call page,zrlmpid.yaml,5,man)
	$(call page,zrlmpi,7,library) <lib/zrlmpi.7.md
	for name in zrlmpicc zrlmpicxx zrlmpifort; do $(call page,$$name,1,library) <lib/zrlmpicc.1.md; done
	gzip -9n bin/manual/man/* bin/manual/library/*

# make release SNAPSHOT=1 makes all files of any commit, and publishes nothing.
SNAPSHOT ?=
PLATFORMS ?=

release: man $(if $(PLATFORMS),,chart) ## all files of a release, into bin/release; signs and publishes them, or makes a snapshot with SNAPSHOT=1 (PLATFORMS=linux/amd64: packages for this machine)
	$(GO) -C internal/tools/release build -o $(CURDIR)/bin/release-tool .
	./bin/release-tool -version '$(VERSION)' $(if $(PLATFORMS),-platforms "$(PLATFORMS)") $(if $(SNAPSHOT),-snapshot)
	rm -r bin/release-tool bin/build

chart: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
chart: ## the Helm chart as a package, into bin/chart
	rm -rf bin/chart
	mkdir -p bin/chart
	$(GO) -C internal/tools/manifests run ./chart -chart $(CURDIR)/deploy/kubernetes/zrlmpid -into $(CURDIR)/bin/chart -version '$(VERSION)'

reproducible: ## build the commit twice, in two folders, and compare programs and all files of a snapshot; some minutes
	GO="$(GO)" ./internal/tools/reproducible.sh

deploy-check: ## unit, image, manifests and packages of deploy/, tested as far as one machine can
	$(GO) -C internal/tools/manifests test ./...
	$(GO) -C internal/tools/release test ./...

release-check: ## install, upgrade and remove a snapshot in a new Debian system, as root; transcript in bin/release-check.txt; some minutes
	$(GO) -C internal/tools/release test -count=1 -timeout 60m -run '^TestInstallation$$' -v ./check -installation $(CURDIR)/bin/release-check.txt

# It builds etcd and kube-apiserver, and downloads the modules of three versions of Kubernetes.
kubernetes-check: ## the manifests against an API server and the schemas of three versions of Kubernetes; the first time compiles it, for minutes
	mkdir -p bin/kubernetes
	$(GO) -C internal/tools/apiserver build -o $(CURDIR)/bin/kubernetes/kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
	$(GO) -C internal/tools/apiserver build -o $(CURDIR)/bin/kubernetes/etcd go.etcd.io/etcd/server/v3
	$(GO) -C internal/tools/manifests test -count=1 -run '^Test(Schemas|APIServer)$$' -v . -programs $(CURDIR)/bin/kubernetes

clean: ## remove what was built
	rm -rf bin coverage.out
