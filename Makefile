# The menu. Every target works from a fresh clone; what is missing is fetched or built first.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo test check bench bench-ack fuzz kill-loop dist clean-servers

help: ## show this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  make demo DEMO_SERVER=mariadb · make fuzz FUZZ_SECONDS=600 · make kill-loop ROUNDS=100 · scripts/demo --help"

demo: ## kill a loaded MySQL and show that binlogd lost nothing
	@scripts/demo

test: ## all tests, on real servers, and the demo's check of itself
	@scripts/servers fetch all
	@scripts/servers sysbench >/dev/null
	cargo test --workspace --locked
	DEMO_SECONDS=5 DEMO_KEEP=no scripts/demo --self-check

check: ## formatting, lints, documentation, licences, shell scripts
	@scripts/check

bench: ## measure, and print the numbers of docs/benchmarks.md
	cargo build --release --locked
	cargo run --release --locked -p binlogd-bench -- all

bench-ack: ## measure every way to make a group durable before its acknowledgement
	cargo build --release --locked -p binlogd -p binlogd-bench
	cargo run --release --locked -p binlogd-bench -- ack $(ACK_OPTIONS)
	cargo run --release --locked -p binlogd-bench -- groups

fuzz: ## feed every parser random input, FUZZ_SECONDS (60) each; needs nightly and cargo-fuzz
	@scripts/fuzz

ROUNDS ?= 20
kill-loop: ## kill binlogd under load ROUNDS (20) times
	@scripts/servers fetch all
	@scripts/servers sysbench >/dev/null
	BINLOGD_KILL_ROUNDS=$(ROUNDS) cargo test --locked -p binlogd --test kill -- --nocapture

dist: ## a release as tar.gz, with checksums, in target/dist
	@scripts/dist

clean-servers: ## remove the downloaded servers
	rm -rf "$${BINLOGD_SERVERS:-$$HOME/.cache/binlogd/servers}"/recipe-*
