# make demo   sets everything up, runs the aggregation lab over TCP and over MPTCP, shows both
# make test   sets everything up, then every check and the tests that are not slow; ten minutes on two idle cores once all is compiled
# make assurance  slow tests and a short form of each campaign, with other random cases each day (assurance/README.md)
# make build  the command at .venv/bin/polypath      make docs   the documentation      make bench   the benchmarks
# make bench-htsim HTSIM=FILE  the works beside csg-htsim, which you have built (docs/performance.md); ROUNDS=n of each, BUILT='g++ 12 -O2' for the page
# make web    the programs of the report page and of the playground (python/polypath/report), from web/, and the playground's simulator
# make validation  every lab against its published figures (assurance/records/validation.md), about a quarter of an hour on two idle cores
# make figures  the figures of the documentation (docs/figures)
# make coverage  how often the intervals of docs/statistics.md cover
# make fuzz   every fuzzer in turn for HOURS=n of CPU time, JOBS=n at once; the record adds up (assurance/records/fuzzing.md); nightly Rust
# make fuzz-coverage  lines of endpoints and parsers that the fuzzers reach (assurance/records/fuzzing.md); CASES=n of each kind
# make kernel the kernel of engine linux, built once a machine (about 8 minutes)
# make wheel  dist/polypath-*.whl for this machine or, on Linux, TARGET=aarch64-unknown-linux-gnu or x86_64-pc-windows-gnu; make wheel-test tries it
# make sdist  dist/polypath-*.tar.gz, the source distribution; make sdist-test builds it in an empty environment
# make campaign  random scenarios, 300,000 or SCENARIOS=n of them from FIRST=n on; goes on where it stopped (target/campaign), unless the program changed
# make quic-outages  10,000 transfers over Multipath QUIC whose paths go dark, CASES=n of them from FIRST=n on; a minute or two (assurance/records/campaign.md)
# make packetdrill PACKETDRILL=FOLDER  packetdrill's scripts against our endpoints and the kernel of engine linux; you have built it there (assurance/records/conformance.md)
# make beside  1,000 random scenarios on the simulator and on the kernel of engine linux (assurance/records/beside.md); SCENARIOS=n from FIRST=n on
# make joins  the cases of the kernel's selftest mptcp_join.sh on the simulator and on the kernel of engine linux (assurance/records/joins.md)
# make selftests  the set-ups of three selftests of the kernel, 1,000 times each in virtual time (assurance/records/selftests.md); RUNS=n, JOBS=n
# make subflows  1,000 random set-ups of path management on the simulator and on the kernel (assurance/records/subflows.md); SCENARIOS=n from FIRST=n on
# make twins     100 captures of networks with hidden parameters, and their twins (assurance/records/twins.md); CAPTURES=n from FIRST=n on
# make tab       every preset of the playground in a browser, its recording beside the command's (assurance/records/tab.md)
# make metamorphic  20,000 random scenarios, each run again after a change without effect (assurance/records/metamorphic.md); SCENARIOS=n from FIRST=n on
# make sabotage  sweeps, clusters and live runs that are killed, disks that fill up, files that do harm (assurance/records/sabotage.md); TIMES=n
# make hostile  every command on hostile machines: full disks, no rights, closed streams (assurance/records/hostile.md); needs root for some
# make interop  the published test cases of QUIC against noq-proto, quinn-proto and aioquic (assurance/records/interop.md)
# make steady  the tests that count on real time, twenty times (RUNS=n); HOW=--busy beside a full load, HOW='--cpus 0.8' with less of the machine
# make mutants  faults put into transport, net and results, which tests should notice (assurance/records/mutants.md); SAMPLES=PACKAGE:SEED:COUNT
# make soak   ten simulated minutes (MINUTES=60 for more) of that kernel with KASAN and lockdep, which is built once, too (20 minutes)

SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := python/polypath/_core.abi3.so
PAGE := web/node_modules
SIMULATOR := python/polypath/playground/simulator.wasm
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

# Only maturin links the module without libpython by itself; plain cargo must be told.
export PYO3_BUILD_EXTENSION_MODULE := 1
export PYO3_PYTHON := $(abspath $(BIN))/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1

.PHONY: demo test build web wheel wheel-test sdist sdist-test kernel soak campaign quic-outages beside subflows sabotage hostile docs validation figures coverage fuzz fuzz-coverage bench bench-htsim clean tools \
    kernel-tools web-tools packetdrill interop joins selftests metamorphic tab twins mutants steady fairness \
    lint-rust test-rust lint-python test-python test-speed test-tools assurance

demo: build
	@$(BIN)/polypath run aggregation

build: $(NATIVE)

$(NATIVE): $(VENV)/.ready $(RUST_SOURCES) pyproject.toml
	@echo 'Compiling the simulator, which takes some minutes'
	@.ci/step compile $(BIN)/maturin develop --profile local --locked --quiet
	@touch $@

$(VENV)/.ready: pyproject.toml | tools
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --group dev
	@touch $@

tools:
	@.ci/need 'command -v cc' gcc libc6-dev
	@.ci/need 'command -v $(PYTHON)' python3
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo 'Python 3.11 or later is needed; set PYTHON=...' >&2; exit 1; }
	@.ci/need '$(PYTHON) -c "import ensurepip, venv"' python3-venv
	@command -v cargo >/dev/null || { echo 'Rust is needed: https://rustup.rs' >&2; exit 1; }

test: build lint-rust test-rust lint-python test-python test-speed

lint-rust: $(VENV)/.ready
	@.ci/step rustfmt sh -c 'cargo fmt --all --check && echo formatted'
	@.ci/step clippy cargo clippy --workspace --all-targets --locked -- -D warnings
	@.ci/step without-noq cargo clippy -p polypath-lab --no-default-features --locked -- -D warnings
	@.ci/step browser .ci/browser

test-rust: $(VENV)/.ready
	@.ci/step 'cargo test' cargo test --workspace --locked

lint-python: build
	@.ci/step ruff $(BIN)/ruff check .
	@.ci/step 'ruff format' $(BIN)/ruff format --check .
	@.ci/step mypy $(BIN)/mypy

test-tools: build $(PAGE)/.ready $(SIMULATOR) target/osken/.ready
	@.ci/need 'command -v chromium' chromium
	@.ci/need 'command -v groff' groff
	@.ci/need 'command -v curl' curl
	@.ci/need 'command -v iperf3' iperf3
	@.ci/need 'command -v tshark' tshark
	@.ci/need 'command -v ip && command -v unshare && command -v setpriv && command -v prlimit' iproute2 util-linux

# One worker more than there are cores: some tests wait for other processes.
test-python: test-tools
	@.ci/step pytest $(BIN)/pytest -n $$($(PYTHON) -c 'import os; print(os.cpu_count() + 1)') -q

# No page is written, and what needs programs from elsewhere is left out: fuzzing, mutants, packetdrill.
TODAY := $(shell expr $$(date +%s) / 86400)
OF_TODAY = --count $(1) --first $(shell expr $(TODAY) '*' $(1))

assurance: test-tools kernel
	@cargo build --locked --quiet -p polypath-lab --examples
	@.ci/step 'slow tests' $(BIN)/pytest -n auto -q -m slow
	@.ci/step campaign target/debug/examples/campaign target/campaign/$(TODAY) 20000 $(shell expr $(TODAY) '*' 20000)
	@.ci/step quic-outages target/debug/examples/quic_outages 1000 $(shell expr $(TODAY) '*' 1000)
	@POLYPATH_FUZZ_CASES=500 .ci/step attackers cargo test --locked -p polypath-transport --test attack
	@POLYPATH_INTEROP_CASES=3000 .ci/step noq-proto cargo test --locked -p polypath-interop --test noq
	@.ci/step beside $(BIN)/python -m assurance.beside $(call OF_TODAY,50)
	@.ci/step joins $(BIN)/python -m assurance.joins
	@.ci/step selftests $(BIN)/python -m assurance.selftests $(call OF_TODAY,2) --simulated 2 mptcp_connect
	@.ci/step subflows $(BIN)/python -m assurance.subflows $(call OF_TODAY,100)
	@.ci/step metamorphic $(BIN)/python -m assurance.metamorphic $(call OF_TODAY,1000)
	@.ci/step tab $(BIN)/python -m assurance.tab $(call OF_TODAY,20)
	@.ci/step twins $(BIN)/python -m assurance.twins $(call OF_TODAY,10) --asked 2
	@.ci/step sabotage $(BIN)/python -m assurance.sabotage --times 1 --seed $(TODAY)
	@.ci/step hostile $(BIN)/python -m assurance.hostile

# osken-manager, which os-ken 4 has no more, to try the example applications with.
target/osken/.ready:
	@$(PYTHON) -m venv target/osken
	@target/osken/bin/pip install --quiet os-ken==3.1.1
	@touch $@

# The built pages are part of the package; tests check that they are current. The simulator is part of a wheel.
web: $(PAGE)/.ready $(SIMULATOR)
	cd web && npm run --silent check && npm run --silent build

$(SIMULATOR): $(RUST_SOURCES)
	@.ci/browser $@

$(PAGE)/.ready: web/package.json web/package-lock.json web/.npmrc | web-tools
	cd web && npm ci --silent
	@touch $@

web-tools:
	@.ci/need 'command -v npm' nodejs npm

# Instructions per packet-hop against benches/instructions.toml.
test-speed: $(VENV)/.ready
	@.ci/need 'command -v valgrind' valgrind
	@cargo build --release --locked --quiet -p polypath-lab --example work
	@.ci/step instructions $(BIN)/python benches/instructions.py target/release/examples/work

# What cannot be had on this machine is said and no failure of the project.
kernel: build kernel-tools
	@$(BIN)/polypath kernel build

MINUTES ?= 10

soak: build kernel-tools
	@$(BIN)/polypath kernel build --debug
	@POLYPATH_LINUX_LIMIT=7200 $(BIN)/python tests/linux/soak.py --minutes $(MINUTES) --debug

RUNS ?= 20

steady: build
	@.ci/need 'command -v tshark' tshark
	@.ci/need 'command -v iperf3' iperf3
	@$(BIN)/python assurance/steady.py --runs $(RUNS) $(HOW)

SCENARIOS ?= 300000
FIRST ?= 0

# zig links against an old glibc, and for other architectures.
WINDOWS := $(findstring windows,$(TARGET))
ZIG := $(if $(filter Linux,$(shell uname -s)),$(if $(WINDOWS),,--zig))
OLD := $(if $(ZIG),--compatibility manylinux_2_17)

# Where the simulator's instructions go in some works, for the compiler. What is built for another architecture does not run here, and zig
# cannot link what counts.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
PROFILE := target/profile/works.profdata
COUNTED := W1 W2 W3 W6 W8 W9
MATURIN := $(BIN)/maturin build --release --locked --quiet

# Functions are found again by names that depend on how they are built, so that only the linker differs.
OWN_LINKER = CARGO_TARGET_$(shell echo $(HOST) | tr a-z- A-Z_)_LINKER

$(PROFILE): $(RUST_SOURCES) | $(VENV)/.ready
	@$(BIN)/pip install --quiet --group wheel
	@rustup --quiet component add llvm-tools
	@rm -rf target/profile/counts target/profile/wheel
	PATH="$(abspath $(BIN)):$$PATH" RUSTFLAGS='-Cprofile-generate=$(abspath target/profile/counts)' $(OWN_LINKER)=cc \
	    $(MATURIN) $(ZIG) $(if $(ZIG),--compatibility linux) --target $(HOST) --out target/profile/wheel --target-dir target/profile/build
	@$(PYTHON) -m venv --clear target/profile/venv
	@target/profile/venv/bin/pip install --quiet target/profile/wheel/*.whl
	target/profile/venv/bin/polypath bench $(COUNTED) --seconds 0.5
	@$$(rustc --print sysroot)/lib/rustlib/$(HOST)/bin/llvm-profdata merge --output $@ target/profile/counts

wheel: $(VENV)/.ready $(SIMULATOR) $(if $(TARGET),,$(PROFILE))
	@$(BIN)/pip install --quiet --group wheel
	@test -z '$(TARGET)' || rustup --quiet target add $(TARGET)
	@test -z '$(WINDOWS)' || .ci/need 'command -v x86_64-w64-mingw32-gcc' gcc-mingw-w64-x86-64
	PATH="$(abspath $(BIN)):$$PATH" $(if $(TARGET),,RUSTFLAGS='-Cprofile-use=$(abspath $(PROFILE))') \
	    $(MATURIN) --strip $(ZIG) $(OLD) --target $(or $(TARGET),$(HOST)) --out dist --target-dir target/wheel
	@ls dist/*.whl

wheel-test: wheel
	@.ci/wheel dist/polypath-*_$$(uname -m).whl

sdist: $(VENV)/.ready
	@$(BIN)/maturin sdist --out dist

sdist-test: sdist
	@.ci/sdist dist/polypath-*.tar.gz

# Not optimised as a release is, so that the endpoints' assertions are in it.
campaign: $(VENV)/.ready
	@cargo build --locked --quiet -p polypath-lab --example campaign
	@program=target/debug/examples/campaign; kept=target/campaign/$$(sha256sum $$program | cut -c 1-12); \
	$$program $$kept $(SCENARIOS) $(FIRST) || { \
		code=$$?; $(MAKE) --no-print-directory build; \
		for plan in $$kept/failure-*.json; do \
			test ! -e "$$plan" || test -e "$${plan%.json}.toml" || $(BIN)/polypath import "$$plan" --out "$${plan%.json}.toml"; \
		done; exit $$code; }

quic-outages: CASES = 10000
quic-outages: $(VENV)/.ready
	@cargo build --locked --quiet -p polypath-lab --example quic_outages
	@target/debug/examples/quic_outages $(CASES) $(FIRST)

packetdrill: build kernel-tools
	@assurance/packetdrill/prepare '$(PACKETDRILL)'
	@.ci/need 'command -v ip && command -v ifconfig && command -v ethtool && command -v sysctl && test -x /usr/bin/python3' \
	    iproute2 net-tools ethtool procps python3
	@cargo build --locked --quiet -p polypath-packetdrill
	@$(BIN)/polypath kernel build --conformance
	@$(BIN)/python assurance/packetdrill/run.py --out assurance/records/conformance.md

subflows: SCENARIOS = 1000
subflows: kernel
	@$(BIN)/python -m assurance.subflows --count $(SCENARIOS) --first $(FIRST) --out assurance/records/subflows.md

beside: SCENARIOS = 1330
beside: kernel
	@cargo build --locked --quiet -p polypath-lab --example campaign
	@$(BIN)/python -m assurance.beside --count $(SCENARIOS) --first $(FIRST) --out assurance/records/beside.md

tab: build $(PAGE)/.ready $(SIMULATOR)
	@.ci/need 'command -v chromium' chromium
	@$(BIN)/python -m assurance.tab --out assurance/records/tab.md

joins: kernel
	@$(BIN)/python -m assurance.joins --out assurance/records/joins.md

selftests: RUNS = 1000
selftests: kernel
	@$(BIN)/python -m assurance.selftests --count $(RUNS) --jobs $(or $(JOBS),1) --out assurance/records/selftests.md

twins: CAPTURES = 100
twins: kernel
	@$(BIN)/python -m assurance.twins --count $(CAPTURES) --first $(FIRST) --out assurance/records/twins.md

metamorphic: SCENARIOS = 20000
metamorphic: build
	@$(BIN)/python -m assurance.metamorphic --count $(SCENARIOS) --first $(FIRST) --out assurance/records/metamorphic.md

fairness: build
	@$(BIN)/python -m assurance.fairness --jobs $(or $(JOBS),1) --out assurance/records/fairness.md --figure docs/figures/fairness.png

TIMES ?= 20

sabotage: build
	@.ci/need 'command -v unshare && command -v setpriv && command -v mount' util-linux mount
	@$(BIN)/python -m assurance.sabotage --times $(TIMES) --out assurance/records/sabotage.md

hostile: build
	@.ci/need 'command -v unshare && command -v setpriv && command -v prlimit && command -v mount' util-linux mount
	@$(BIN)/python -m assurance.hostile --out assurance/records/hostile.md

interop: $(VENV)/.ready
	@cargo run --locked --quiet -p polypath-interop --example matrix -- --python $(BIN)/python --out assurance/records/interop.md

# Of each package and seed so many mutants.
SAMPLES ?= polypath-transport:3:19 polypath-net:1:24 polypath.results:3:20

mutants: build
	@command -v cargo-mutants >/dev/null || cargo install --locked --quiet cargo-mutants
	@$(BIN)/pip install --quiet --group mutants
	@$(BIN)/python -m assurance.mutants $(SAMPLES) --out assurance/records/mutants.md

kernel-tools:
	@.ci/need 'command -v flex' flex
	@.ci/need 'command -v bison' bison
	@.ci/need 'command -v bc' bc

# With the playground, which its first page has in a frame, unless the target of browsers cannot be had.
docs: build $(PAGE)/.ready $(SIMULATOR)
	@$(BIN)/pip install --quiet --group docs
	@$(BIN)/python docs/prose.py --kept
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html
	@rm -f docs/_build/html/try.html
	@test ! -e $(SIMULATOR) || $(BIN)/polypath playground --out docs/_build/html/try.html
	@echo 'docs/_build/html/index.html'

validation: build
	$(BIN)/polypath check --all --markdown assurance/records/validation.md || test $$? -eq 1 # a miss stands on the page

# The sweeps whose figures the documentation shows; what is there already of target/figures is kept.
FIGURES := settings-grid:grid-goodput shared-bottleneck/shared:curve-goodput buffers/lan:curve-goodput \
    buffers/wan:curve-goodput buffers/wan-third:curve-goodput buffers/mixed:curve-goodput \
    delay-sigmoid/sweep:curve-goodput
COMPARED := target/figures/comparing
DESIGN := low high low-losses high-losses
PICTURE := node web/screenshot.mjs

figures: build $(PAGE)/.ready
	@for lab in settings-grid shared-bottleneck buffers delay-sigmoid; do \
	    $(BIN)/polypath run $$lab --out target/figures/$$lab || exit; done
	@$(BIN)/polypath run exposure --run mptcp --out target/figures/exposure --plot --kind exposure-goodput
	@cp target/figures/exposure/mptcp/plots/exposure-goodput.png docs/figures/exposure.png
	@$(BIN)/polypath run mpquic-design $(DESIGN:%=--run %) --vary 'point=*' --out target/figures/mpquic-design > /dev/null
	@$(BIN)/polypath plot $(DESIGN:%=target/figures/mpquic-design/%) --kind box-benefit --out target/figures/mpquic-design-boxes
	@cp target/figures/mpquic-design-boxes/box-benefit.png docs/figures/mpquic-design.png
	@$(BIN)/polypath run aggregation --run mptcp --out target/figures/aggregation --plot --kind rate
	@cp target/figures/aggregation/mptcp/plots/rate.png docs/figures/aggregation.png
	@rm -f docs/figures/bcube.svg
	@$(BIN)/polypath validate bcube-subflows --run lia --plot docs/figures/bcube.svg > /dev/null
	@for figure in $(FIGURES); do \
	    cp target/figures/$${figure%%:*}/plots/$${figure##*:}.png docs/figures/$$(echo $${figure%%:*} | tr / -).png || exit; done
	@$(BIN)/polypath compare examples/wifi-lte.toml --by defaults.scheduler --out $(COMPARED)
	@$(BIN)/polypath plot $(COMPARED) --kind cdf-delay
	@$(BIN)/polypath plot $(COMPARED)/scheduler=default,seed=1 --kind rate
	@$(BIN)/polypath plot --kind rate --out $(COMPARED)-rates \
	    $(COMPARED)/scheduler=default,seed=1 $(COMPARED)/scheduler=roundrobin,seed=1 $(COMPARED)/scheduler=redundant,seed=1
	@cp $(COMPARED)/plots/cdf-delay.png docs/figures/comparing-cdf.png
	@cp $(COMPARED)/scheduler=default,seed=1/plots/rate.png docs/figures/comparing-rate.png
	@cp $(COMPARED)-rates/rate.png docs/figures/comparing-rates.png
	@$(BIN)/polypath report $(COMPARED)
	@$(PICTURE) $(COMPARED)/report.html '#run-1' 'section.why' '[data-chart=rate]' docs/figures/comparing-page.png
	@$(BIN)/polypath report failover --run busy-5 --out target/figures/report.html
	@$(PICTURE) target/figures/report.html '' 'header' '[data-chart=rate]' docs/figures/report.png 4.5 5

HOURS ?= 0.1
JOBS ?= 1

fuzz: $(VENV)/.ready
	@command -v cargo-fuzz >/dev/null || cargo install --locked --quiet cargo-fuzz
	@cargo +nightly --version >/dev/null 2>&1 || rustup --quiet toolchain install --profile minimal nightly
	@$(BIN)/python -m assurance.fuzzing --hours $(HOURS) --jobs $(JOBS) --out assurance/records/fuzzing.md

# Lines of the endpoints and parsers that the fuzzers reach, CASES of each kind.
CASES ?= 500
FUZZED := cargo llvm-cov --locked --no-report
fuzz-coverage:
	@command -v cargo-llvm-cov >/dev/null || cargo install --locked --quiet cargo-llvm-cov
	@rustup component add llvm-tools >/dev/null 2>&1 || true
	@cargo llvm-cov clean --workspace
	@POLYPATH_FUZZ_CASES=$(CASES) $(FUZZED) -p polypath-transport --test attack --quiet
	@POLYPATH_FUZZ_CASES=$(CASES) $(FUZZED) -p polypath-transport --test quic --quiet -- fuzz
	@POLYPATH_FUZZ_CASES=$(CASES) $(FUZZED) -p polypath-wire --test fuzz_smoke --quiet
	@$(FUZZED) -p polypath-wire --test openflow --quiet -- damage faults
	@cargo llvm-cov report --json --summary-only | $(PYTHON) docs/fuzz_coverage.py

coverage: build
	@$(BIN)/python docs/coverage.py

# Optimised as a wheel is, but for its profile.
bench: $(VENV)/.ready
	@$(BIN)/maturin develop --release --locked --quiet
	@$(BIN)/polypath bench

ROUNDS ?= 5

bench-htsim: $(VENV)/.ready
	@cargo build --release --locked --quiet -p polypath-lab --example work
	@$(BIN)/python benches/htsim/side_by_side.py '$(HTSIM)' target/release/examples/work --rounds $(ROUNDS) \
	    --built '$(BUILT)' --out docs/performance.md

clean:
	rm -rf $(VENV) $(NATIVE) $(PAGE) target docs/_build
