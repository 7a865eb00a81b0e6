# Longshore: build, check, test. `make help` says what there is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

cache := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/longshore
part = $(cache)/parts/$(1)-$(shell awk '$$1 == "$(1)" { print $$2 }' tools/parts/versions)/bin

# A build machine clones afresh each time: its target directory lives with the parts, and is warm.
ifeq ($(CI),true)
export CARGO_TARGET_DIR ?= $(cache)/target
endif
target := $(or $(CARGO_TARGET_DIR),target)

# etcd-client's build script calls protoc.
export PROTOC ?= $(call part,protoc)/protoc

.PHONY: help
help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

# --- set-up -------------------------------------------------------------------------------------

.PHONY: setup setup-build setup-lint setup-test
setup: setup-build setup-lint setup-test ## install every pinned part into the user's cache

setup-build:
	@tools/setup.sh protoc

setup-lint:
	@tools/setup.sh buf shellcheck cargo-deny helm

setup-test:
	@tools/setup.sh etcd kubernetes helm grpcio buf libfaketime karpenter-crds

# --- use ----------------------------------------------------------------------------------------

.PHONY: build demo
build: setup-build ## build every program (debug; the planner is optimised in it too)
	cargo build --workspace --bins

demo: build ## one cluster and one region, simulated, driven by the real programs
	$(target)/debug/demo

.PHONY: image
image: ## build the images of every program for amd64 and arm64, twice, into target/images (ONCE=1 for once)
	deploy/images/twice.sh $(target)/images

.PHONY: release
release: ## make a release into target/release-VERSION (VERSION=0.1.0; KEY=release.pem to sign its checksums)
	deploy/release.sh $(VERSION) $(target)/release-$(VERSION)

# For this machine alone. It takes root, and what own-machine.sh says.
.PHONY: install-test
install-test: build-test ## install the release on a real node, from docs/install.md, and take it away again (root; six minutes after a build)
	@tools/setup.sh etcd kubernetes helm kubelet containerd coredns pause
	deploy/images/build.sh $(target)/images-here $(subst x86_64,amd64,$(subst aarch64,arm64,$(shell uname -m)))
	integration-tests/own-machine.sh \
		cargo test --workspace --test main -- --include-ignored --nocapture --test-threads 1 install:: parts::node::

# --- check --------------------------------------------------------------------------------------

.PHONY: test build-test
test: ## everything that proves it works, on the real control plane (first run: about half an hour)
	@$(MAKE) --no-print-directory -j2 setup-test build-test
	cargo test --workspace --no-fail-fast

# All targets at once: the same features as `cargo test`, so nothing is compiled twice, and the
# programs that the integration tests start are there.
build-test: setup-build
	cargo build --workspace --all-targets

.PHONY: simulate settle crashes planted
simulate: setup-build ## live through 200 seeds of the whole system, with faults (SIMULATE_SEEDS=0..20 for fewer)
	cargo build --profile sim --package longshore-sim
	$(target)/sim/longshore-sim run --seeds $(or $(SIMULATE_SEEDS),0..200)

settle: setup-build ## leave ten fleets alone that may consolidate at once, and say what was moved all the same
	cargo build --profile sim --package longshore-sim
	$(target)/sim/longshore-sim run --settling --seeds $(or $(SETTLE_SEEDS),0..10) --minutes 10

# What happens to a launch that shares its call: whoever asks, records or tags dies or is cut off, and
# EC2 throttles, refuses, loses its answer, or is slow to show what it gave.
crash_faults := kill,stop,panic,task_panics,cutoff,cloud_replies_lost,cloud_errors,throttled,$\
launches_fail,revoked,slow_to_show,short_listings,etcd_errors,etcd_replies_lost,leader_change,$\
leases_end,overtaken,no_quorum

crashes: setup-build ## 1,000 seeds of launches that share their calls, while everything around them dies (CRASH_SEEDS=0..50 for fewer)
	cargo build --profile sim --package longshore-sim
	$(target)/sim/longshore-sim run --minutes 6 --clusters 1 --pods 60 --faults $(crash_faults) \
		--seeds $(or $(CRASH_SEEDS),0..1000)

planted: setup-build ## plant each defect that once was, and say which seed of the simulation finds it
	cargo build --profile sim --package longshore-sim
	$(target)/sim/longshore-sim planted
	$(target)/sim/longshore-sim planted --tests

.PHONY: takeover
takeover: build-test ## take a cluster over from the published Karpenter, and give it back (five minutes)
	@tools/setup.sh etcd kubernetes karpenter
	cargo test --workspace --test main adoption -- --include-ignored

.PHONY: repair-test
repair-test: build-test ## break a node's network on the real control plane, and see it replaced (seven minutes after a build)
	@tools/setup.sh etcd kubernetes
	cargo test --workspace --test main walkthrough::repair -- --include-ignored

.PHONY: fuzz
fuzz: setup-build ## feed odd bytes to manifests, requirements and ComputePlan, a minute each (after a build)
	fuzz/run.sh 60

.PHONY: lint lint-cheap clippy fmt-check fmt deny proto-lint shell-lint deploy-lint
lint: lint-cheap clippy ## format, clippy, dependencies, protocol, deployment files, shell scripts

lint-cheap: fmt-check shell-lint proto-lint deploy-lint deny

fmt: ## format the Rust sources
	cargo fmt --all

fmt-check:
	cargo fmt --all --check

clippy: setup-build
	cargo clippy --workspace --all-targets -- -D warnings
	# The simulation by itself: without the feature that everything else turns on, AWS.
	cargo clippy --package longshore-sim --all-targets -- -D warnings

deny: setup-lint
	cargo fetch --locked --quiet
	PATH="$(call part,cargo-deny):$$PATH" cargo deny --offline check bans licenses sources

proto-lint: setup-lint
	PATH="$(call part,buf):$$PATH" tools/lint-protocol.sh

deploy-lint: setup-lint
	PATH="$(call part,helm):$$PATH" deploy/check.sh

shell-lint: setup-lint
	$(call part,shellcheck)/shellcheck $$(git ls-files '*.sh' 'integration-tests/stand-ins/*' .ci/run)

# --- measure ------------------------------------------------------------------------------------

.PHONY: bench reach cluster-bench peer-live busy deep differ agree sizes timings
bench: setup-build ## measure the planner and Karpenter's on the same files, into docs/benchmarks.md (half an hour)
	@tools/setup.sh peer
	cargo build --release --package longshore-it --bin bench
	$(target)/release/bench all $(BENCH_ARGS)

reach: setup-build ## measure 100 clusters on one scheduler, floods, deaths and interruptions (a quarter of an hour after a build)
	cargo build --release --package longshore-scheduler --package longshore-actuator \
		--package longshore-watcher --package longshore-it --bins
	$(target)/release/bench reach all $(REACH_ARGS)

cluster-bench: setup-build ## measure a cluster of 100,000 pods, and starts with 50,000 waiting, into docs/cluster.md (half an hour; CLUSTER_BENCH_ARGS="--pods 1000 --nodes 100 --pending 500" for less)
	cargo build --release --package longshore-scheduler --package longshore-actuator \
		--package longshore-watcher --package longshore-it --bins
	$(target)/release/bench cluster $(CLUSTER_BENCH_ARGS)

peer-live: setup-build ## run Longshore and the published Karpenter side by side on real control planes, into docs/live (more than five hours)
	@tools/setup.sh etcd kubernetes karpenter
	cargo build --release --package longshore --package longshore-it --bin longshore --bin bench
	$(target)/release/bench live --keep $(target)/live $(PEER_LIVE_ARGS)

busy: build-test ## run the walkthrough W2 with pods of two shapes twenty times beside eight busy loops
	@$(MAKE) --no-print-directory setup-test
	$(target)/debug/bench reach busy $(BUSY_ARGS)

differ: build-test ## let both planners plan seeded clusters with many constraints (a minute or two; DIFFER_SEEDS=0..1000 for all)
	@tools/setup.sh peer
	$(target)/debug/bench differ --seeds $(or $(DIFFER_SEEDS),0..100) --dir $(target)/differ

deep: differ fuzz agree takeover ## what takes too long for every change: the targets of these names

agree: build-test ## carry out the plans of 300 random clusters on the real control plane (three quarters of an hour; AGREE_SEEDS=300..320 for others)
	@$(MAKE) --no-print-directory setup-test
	$(target)/debug/bench agree --seeds $(or $(AGREE_SEEDS),0..300)

sizes: setup-build ## say how large functions, files and rooms are, and how many circles files form
	cargo test --workspace --test main tidy:: -- --nocapture --test-threads=1 | grep -o 'size: .*'

timings: setup-build ## check the planner alone and then the whole from nothing, and say how long each took
	tools/timings.sh
