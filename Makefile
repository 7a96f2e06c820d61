# Two commands do all the set-up: `make demo` and `make test`. Everything else is for developers.
.PHONY: demo test check bench engine bless prerequisites help
.DEFAULT_GOAL := help

help: ## Says what each target does.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

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

check: ## Formats, lints and documents strictly, without running anything.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

bless: engine ## Accepts the golden files as the code now makes them; read the diff before you commit it.
	INSTA_UPDATE=always cargo test --workspace

bench: engine ## Prints guard overhead, engine round trip, answer time and rows read on the demo fleet.
	cargo build --release --package sightline --package sightline-evals
	cargo bench --package sightline-guard
	./target/release/bench
