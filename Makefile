# The menu. Every target works from a fresh clone; what is missing is fetched or built first.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo demo-restore fetch test test-quick test-clients test-page test-alerts check manifests bench-ack bench-archive bench-catchup bench-find bench-serve bench-many bench-quorum bench-restore back-again lab fuzz kill-loop switch-overs chaos failovers node-away mysql-tests sim sim-archive sim-quorum soak dist dist-twice container test-packages packages-check test-release clean-servers docs reference lines times

help: ## show this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  make demo DEMO_SERVER=mariadb · make fuzz FUZZ_SECONDS=600 · make kill-loop ROUNDS=100 · scripts/demo --help"
	@echo "  make mysql-tests MYSQL_TESTS_MINUTES=600"
	@echo "  make soak MINUTES=30 · make chaos ROUNDS=200 · make chaos SEED=7 · make sim STEPS=10000000 · make sim SEED=7 · make sim-archive SEEDS=1000000 · make sim-quorum SEEDS=1000000"
	@echo "  make lab LAB_PROFILE=quick · make lab LAB_STUDIES=virtual-replica LAB_OPTIONS='--set threads=2,16'"
	@echo "  make lab LAB_PROFILE=quick LAB_STUDIES=virtual-replica LAB_OPTIONS='--set yardsticks=bare,go-mysqlbinlog'"

demo: ## kill a loaded MySQL and show that binlogd lost nothing
	@scripts/demo

demo-restore: ## drop a table on a loaded MySQL, find it in the log, and bring back the table, and a server from nothing
	@scripts/demo-restore

fetch: ## what the tests take from the network: servers, stores, the tools that read them
	@scripts/servers fetch all
	@scripts/servers sysbench >/dev/null
	@scripts/stores fetch versitygw age zstd haproxy >/dev/null
	@for name in azurite awscli rclone; do scripts/stores fetch $$name >/dev/null || \
		echo "*** $$name cannot be fetched (the reason is above): the tests that need it are skipped, or fail with BINLOGD_NO_SKIPS ***"; done

# Every target of tests but those with servers, by cargo's rule of where they are.
OTHER_TESTS := $(filter-out servers_%,$(sort $(basename $(notdir $(wildcard crates/*/tests/*.rs))) \
	$(notdir $(patsubst %/main.rs,%,$(wildcard crates/*/tests/*/main.rs)))))
CARGO_TEST := cargo test --workspace --locked --no-fail-fast
TEST_OTHERS := RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(nproc)} $(CARGO_TEST) --lib --bins $(OTHER_TESTS:%=--test %)

# With the program that the tests run, which stands: a release build takes as long as a third of the tests.
TEST_DEMO := DEMO_BINLOGD=$${CARGO_TARGET_DIR:-target}/debug/binlogd DEMO_SECONDS=5 DEMO_KEEP=no scripts/demo --self-check

# The tests with servers wait more than they compute: all else runs beside them.
test: fetch ## all tests, on real servers, and the demo's check of itself
	cargo test --workspace --locked --no-run
	@scripts/lib/beside scripts/test-servers $$'$(TEST_OTHERS)\n$(CARGO_TEST) --doc' '$(TEST_DEMO)'

QUICK_SEEDS ?= 300
test-quick: ## the tests that need no server, under a minute after building; QUICK_SEEDS (300) simulated histories
	BINLOGD_SIM_SEEDS=$(QUICK_SEEDS) cargo test --workspace --locked --quiet --lib --bins \
		--test static --test dependencies --test scripted --test stream --test 'gtid_*' --test '*_allocation' --test simulation

test-clients: ## log readers of other languages, on older servers too
	@scripts/servers fetch all
	cargo test --locked -p binlogd --test servers_serve serve_clients:: -- --include-ignored --test-threads=$$(nproc)

test-alerts: ## bring a real binlogd into each failure, before a real Prometheus with the packaged alerts, and do what the runbook says
	@scripts/servers fetch mysql-9.7 promtool
	cargo test --workspace --locked --test servers_admin alerts:: -- --include-ignored --test-threads=$${ALERTS_THREADS:-$$(( $$(nproc) * 2 ))}

test-page: ## the web page in a headless Chromium, against real servers; SHOTS=FOLDER keeps screenshots
	@scripts/test-page $(SHOTS)

check: ## formatting, lints, documentation, licences, shell scripts
	@scripts/check

manifests: ## hold the example for Kubernetes against its schemas, and the configurations in it against binlogd
	@scripts/manifests

bench-ack: ## time to an acknowledgement, beside what the disk alone takes and the simplest receiver
	cargo build --release --locked -p binlogd -p binlogd-bench
	cargo run --release --locked -p binlogd-bench -- ack $(ACK_OPTIONS)
	cargo run --release --locked -p binlogd-bench -- groups

bench-archive: ## archive a backlog beside zstd | age | aws s3 cp, with what that takes of memory
	@scripts/servers fetch mysql-9.7
	@scripts/stores fetch versitygw age zstd awscli >/dev/null
	cargo build --release --locked -p binlogd -p binlogd-bench
	cargo run --release --locked -p binlogd-bench -- archive $(ARCHIVE_OPTIONS)

bench-find: ## a walk of a log, and a search over 1,000 files of 100 MB by their indexes
	cargo build --release --locked -p binlogd -p binlogd-bench
	cargo run --release --locked -p binlogd-bench -- find $(FIND_OPTIONS)

GIB ?= 2.1
bench-catchup: ## pull a backlog of GIB (2.1) from a real MySQL, beside other programs
	@scripts/servers fetch mysql-9.7
	cargo build --release --locked
	cargo run --release --locked -p binlogd-bench -- catchup --gib $(GIB)

bench-quorum: ## commits on a real source with a quorum of three, beside one binlogd, a chain, and MySQL's count, over delays
	@scripts/servers fetch mysql-9.7
	cargo build --release --locked -p binlogd -p binlogd-bench
	cargo run --release --locked -p binlogd-bench -- quorum $(QUORUM_OPTIONS)

bench-restore: ## bring a server from a backup to the end of the log, beside mysqlbinlog | mysql and beside relay logs
	@scripts/servers fetch mysql-9.7
	cargo build --release --locked -p binlogd -p binlogd-bench
	cargo run --release --locked -p binlogd-bench -- restore $(RESTORE_OPTIONS)

bench-serve: ## send to readers, beside a real MySQL that has the same files
	@scripts/servers fetch mysql-9.7
	cargo build --release --locked
	cargo run --release --locked -p binlogd-bench -- serve

SOURCES ?= 200
bench-many: ## acknowledge for SOURCES (200) sources in one process, beside one
	cargo build --release --locked
	cargo run --release --locked -p binlogd-bench -- many --sources $(SOURCES)

back-again: ## measure how soon commits return after restarts and resets of real sources
	@scripts/servers fetch mysql-9.7 mariadb-11.8
	cargo build --release --locked
	cargo test --release --locked -p binlogd --test servers_receive back_again::measured -- --ignored --nocapture --test-threads=1

LAB_PROFILE ?= smoke
LAB_STUDIES ?= all
LAB_DB ?= target/lab-$(LAB_PROFILE).sqlite
# How the lab itself is built; what it measures is a release build always. Empty where it is built for tests anyway.
LAB_BUILD ?= --release
lab: ## run the five studies of docs/measured/lab.md as LAB_PROFILE (smoke), and report into target/lab-report
	@scripts/servers fetch all
	@scripts/servers sysbench >/dev/null
	cargo build --release --locked --bin binlogd
	cargo build $(LAB_BUILD) --locked --bin binlogd-lab
	cargo run $(LAB_BUILD) --locked --quiet --bin binlogd-lab -- --db $(LAB_DB) \
		run $(LAB_STUDIES) --profile $(LAB_PROFILE) $(LAB_OPTIONS)
	cargo run $(LAB_BUILD) --locked --quiet --bin binlogd-lab -- --db $(LAB_DB) report --out target/lab-report

fuzz: ## feed every parser random input, FUZZ_SECONDS (60) each; needs nightly and cargo-fuzz
	@scripts/fuzz

ROUNDS ?= 20
kill-loop: ## kill binlogd, and a MariaDB that then cuts its own log, under load ROUNDS (20) times
	@scripts/servers fetch all
	@scripts/servers sysbench >/dev/null
	BINLOGD_KILL_ROUNDS=$(ROUNDS) cargo test --workspace --locked --test 'servers_*' -- kill:: mariadb_recovery:: --nocapture

switch-overs: ## planned switch-overs under load, ROUNDS (20) in each scene: two hosts, three, peers, a chain
	@scripts/servers fetch all
	BINLOGD_SWITCH_ROUNDS=$(ROUNDS) cargo test --workspace --locked --test servers_timelines --test servers_serve -- switch_over --nocapture

chaos: ## a quorum, its servers and who promotes: ROUNDS (20) rounds of what goes wrong, on each server; or one SEED again
	@scripts/servers fetch mysql-9.7 mariadb-11.8
	BINLOGD_CHAOS_ROUNDS=$(ROUNDS) $(if $(SEED),BINLOGD_TEST_SEED=$(SEED)) \
		cargo test --workspace --locked --test servers_timelines chaos:: -- --nocapture --test-threads=1

COMMITS ?= 1000
node-away: ## measure commits while one node of three is stopped, killed, hung, slow or cut off: COMMITS (1000) in each case
	@scripts/servers fetch mysql-9.7 mariadb-11.8
	BINLOGD_COMMITS=$(COMMITS) cargo test --release --locked -p binlogd --test servers_receive nodes:: -- --nocapture --test-threads=1

failovers: ## kill the source under load ROUNDS (20) times on both servers; watchers, promote and HAProxy bring the clients to the next
	@scripts/servers fetch all
	@scripts/stores fetch haproxy >/dev/null
	BINLOGD_FAILOVER_ROUNDS=$(ROUNDS) cargo test --workspace --locked --test servers_timelines -- failovers:: --nocapture

drills: ## ROUNDS (20) clean drills of a recovery on both servers, and each fault that a drill must find
	@scripts/servers fetch mysql-9.7 mariadb-11.8
	BINLOGD_DRILL_ROUNDS=$(ROUNDS) cargo test --workspace --locked --test servers_archive -- drill:: --nocapture

MINUTES ?= 2
soak: ## break network, binlogd and sources at random for MINUTES (2), and lose nothing
	@scripts/servers fetch mysql-9.7 mariadb-11.8
	BINLOGD_SOAK_MINUTES=$(MINUTES) cargo test --workspace --locked --test servers_durable soak:: -- --nocapture

MYSQL_TESTS_MINUTES ?= 10
mysql-tests: ## run MySQL's and MariaDB's own suites as a workload for MYSQL_TESTS_MINUTES (10)
	@if scripts/servers suites mysql-9.7 >/dev/null && scripts/servers suites mariadb-11.8 >/dev/null; then \
		BINLOGD_MYSQL_TESTS_MINUTES=$(MYSQL_TESTS_MINUTES) \
			cargo test --workspace --locked --test servers_durable mysql_tests:: -- --nocapture; \
	else \
		echo '*** SKIPPED: make mysql-tests: the test suites cannot be fetched (the reason is above); NOTHING WAS TESTED ***'; \
	fi

STEPS ?= 1000000
sim: ## simulate failures for STEPS (1000000) steps, or replay one SEED
	$(if $(SEED),BINLOGD_SIM_SEED=$(SEED),BINLOGD_SIM_STEPS=$(STEPS)) \
		cargo test --locked -p binlogd --test simulation -- --nocapture simulated

SEEDS ?= 100000
sim-archive: ## simulate writers of one archive over a store that fails, SEEDS (100000) times, or replay one SEED
	$(if $(SEED),BINLOGD_STORE_SEED=$(SEED),BINLOGD_STORE_SEEDS=$(SEEDS)) \
		cargo test --release --locked -p binlogd-archive --test simulation -- --nocapture

sim-quorum: ## simulate a quorum of binlogds, its servers and promotions, SEEDS (100000) times, or replay one SEED
	$(if $(SEED),BINLOGD_QUORUM_SEED=$(SEED),BINLOGD_QUORUM_SEEDS=$(SEEDS)) \
		cargo test --release --locked -p binlogd-quorum --test histories -- --nocapture

docs: ## the pages as a book, target/book/index.html, every link in it checked
	@scripts/docs

reference: ## write docs/reference (keys, commands, metrics, JSON) from the program, and the drawing of the crates
	cargo run --locked --quiet --bin binlogd-reference -- pages docs/reference
	cargo run --locked --quiet --bin binlogd-reference -- crates

lines: ## count lines of product, tooling and tests by crate, text of docs, packages, big files and folders; COMMIT=… counts that
	@scripts/lines $(COMMIT)

times: ## measure, in a clean clone: a cold release build, demo and test, and an edit in the serving code (WHAT='build edit')
	@scripts/lib/times $(WHAT)

dist: ## static binaries as tar.gz, .deb and .rpm, with SBOM and checksums, in target/dist; ARCHITECTURE (x86_64 and aarch64)
	@scripts/dist $(ARCHITECTURE)

dist-twice: ## build a release twice, in two folders, and compare the bytes
	@scripts/dist twice

container: ## the image of the release in target/dist, for podman and docker
	@scripts/container

test-packages: ## install, upgrade under load, remove and purge the packages in a clean Debian; run the image; install from a signed repository
	@scripts/servers fetch mysql-9.7
	@scripts/servers sysbench >/dev/null
	@scripts/test-packages

packages-check: ## pack the program as it is built for the tests, and look at the packages: contents, lintian, rpmlint
	@scripts/test-packages contents

test-release: ## sign small packages with throw-away keys as scripts/release does; what apt, rpm and dnf say when a byte is changed
	@scripts/test-packages release

clean-servers: ## remove the downloaded servers
	rm -rf "$${BINLOGD_SERVERS:-$$HOME/.cache/binlogd/servers}"/recipe-*
