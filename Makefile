# Two commands do all the set-up: `make demo` and `make test`. Everything else is for developers.
.PHONY: demo test test-model check bench fuzz engine bless prerequisites help
.DEFAULT_GOAL := help

help: ## Says what each target does.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

prerequisites:
	@command -v cargo >/dev/null || { echo "Rust is missing: install it with rustup, then run this again"; exit 1; }
	@command -v cc >/dev/null || { echo "a C compiler is missing: install one, for example 'apt-get install build-essential', then run this again"; exit 1; }
	@command -v npm >/dev/null || { echo "npm is missing (it fetches the engine): install Node.js with npm, for example 'apt-get install nodejs npm', then run this again"; exit 1; }

engine: prerequisites ## Fetches the embedded engine into the user's cache, once.
	@sh tools/engine/fetch-engine.sh

demo: engine ## Builds, loads the demo fleet, serves it, prints the URL, logins and a first answered question.
	cargo build --release --package sightline
	./target/release/sightline serve --demo

test: engine ## Runs every test.
	cargo fmt --all --check
	cargo test --workspace --no-fail-fast
	node --test assistant/web/tests/

test-model: ## Asks a real, small model: fetches it with llama.cpp's source, builds that, and sees its inventions stopped; minutes.
	@sh assistant/llm/test-model.sh

check: ## Formats, lints and documents strictly, without running anything.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

bless: engine ## Accepts the golden files as the code now makes them; read the diff before you commit it.
	INSTA_UPDATE=always cargo test --workspace

bench: engine ## Prints guard overhead, the audit log's pace, the loop around a model, engine round trip, answer time, and guarded over raw time at 100 M rows.
	cargo build --release --package sightline --package sightline-evals
	cargo bench --package sightline-guard
	cargo bench --package sightline-audit -- 500000
	cargo test --release --package sightline-llm --test overhead -- --ignored --nocapture
	./target/release/bench

# How long each target is fuzzed, seconds.
FUZZ_SECONDS ?= 60
FUZZ := tools/guard/fuzz

fuzz: ## Fuzzes the checker and every tool's arguments, FUZZ_SECONDS=60 each; needs a nightly toolchain and cargo-fuzz.
	@cargo +nightly fuzz --version >/dev/null 2>&1 || { echo "cargo-fuzz or its toolchain is missing: run 'rustup toolchain install nightly' and 'cargo install cargo-fuzz', then this again"; exit 1; }
	cp Cargo.lock $(FUZZ)/Cargo.lock
	cargo +nightly run --manifest-path $(FUZZ)/Cargo.toml --example seeds -- $(FUZZ)/corpus
	cargo +nightly fuzz build --fuzz-dir $(FUZZ)
	for target in $$(cargo +nightly fuzz list --fuzz-dir $(FUZZ)); do \
		cargo +nightly fuzz run --fuzz-dir $(FUZZ) $$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -max_len=16384 || exit 1; \
	done
