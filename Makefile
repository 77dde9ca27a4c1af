# The commands of this repository. `make help` lists them; cargo and scripts/ do the work.

TARGET := $(or $(CARGO_TARGET_DIR),target)

# Names of steps that `make test` runs, e.g. `make test STEPS="format system"`. Empty: all steps.
STEPS ?=

.DEFAULT_GOAL := help
.PHONY: help run demo test busy bench fmt fuzz deny install deb static container wheel

# Where `make install` puts the files, below DESTDIR.
PREFIX ?= /usr/local


help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build the release binary and start the controller on its embedded default configuration
	cargo build --release -p bellrock-cli
	@echo 'no network at hand? "make demo" shows one, "$(TARGET)/release/bellrock emulate" connects one to this controller'
	exec $(TARGET)/release/bellrock run

demo: ## show a controller and an emulated network at work, in this terminal (no root, no other software)
	cargo build --release -p bellrock-cli
	exec $(TARGET)/release/bellrock demo

test: ## install what the tests need (as root), then run every check (STEPS="a b" for some)
	@scripts/test $(STEPS)

busy: ## run the tests five times beside two busy loops, in about two hours (see scripts/busy)
	@scripts/busy

bench: ## measure the targets of the engine in about seven minutes, into docs/performance.md (needs valgrind)
	@scripts/bench

install: ## build the release binary, and install it with its unit, manual pages and completions (PREFIX, DESTDIR)
	cargo build --release -p bellrock-cli
	scripts/install $(TARGET)/release/bellrock "$(DESTDIR)" "$(PREFIX)"

deb: ## build the release binary, the Python package, and Debian packages of both, in TARGET/debian
	cargo build --release -p bellrock-cli
	wheel=$$(scripts/python wheel) && scripts/deb $(TARGET)/release/bellrock $(TARGET)/debian "$$wheel"

static: ## build one static binary, which runs on any Linux of this architecture (needs musl-gcc)
	@scripts/static

wheel: ## build the Python package for release, in TARGET/wheels/release
	@scripts/python wheel

container: ## build a container image of a static binary, without a daemon, in TARGET/container (needs buildah)
	binary=$$(scripts/static) && scripts/container "$$binary" $(TARGET)/container

fmt: ## format the Rust sources
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml

fuzz: ## run every fuzz target for ten minutes (needs the nightly toolchain of fuzz/)
	@scripts/fuzz run

deny: ## check licences, sources, bans and known vulnerabilities of the crates (installs cargo-deny in TARGET/tools)
	scripts/deny install
	scripts/deny
