# Every target is enough on its own on a Debian 12 with git and make: it installs the packages it misses
# (tools/install-packages), configures, builds and runs. JOBS=N limits the processes of a build.
JOBS ?= $(shell nproc)
export JOBS

.PHONY: help packages build test security demo bench lint format sanitize fuzz third-party chaos survive survive-store stress ray reproduce reproduce-kaas reproduce-fluid reproduce-fast portable package image package-check clean
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

packages: # what a build needs and Debian has
	@tools/install-packages

build: packages ## build/bin/fairlead and build/lib
	@tools/console-vendor || true
	@tools/build release

test: build ## unit tests, then the black-box tests under tests/
	@tools/test --jobs $(JOBS)

security: build ## attacks on a node from outside and from inside of functions (tests/security)
	@tools/python-env tests/requirements.txt build/venv
	@build/venv/bin/python -m pytest -q tests/security

# What it runs, and the README's first commands: half of a build is tests.
DEMO_BUILDS = fairlead fairlead_shim softgpu_cuda softgpu_nvml softgpu kernel_library \
              $(addprefix function_, imagenet roberta ffmpeg fft isoneural lud needle pathfinder noop)
demo: packages ## 24 functions on one GPU, the same workload under FCFS and MQFQ-Sticky
	@tools/console-vendor || true
	@tools/build release $(DEMO_BUILDS)
	@tools/demo

bench: build ## every number of the README, one JSON line each
	@tools/bench

lint: build ## format, static analysis, include direction, sizes, exported symbols
	@tools/lint/run

format: packages ## clang-format, in place
	@tools/lint/format.py --fix

SANITIZE ?= all
sanitize: packages ## unit tests under the address, undefined behaviour and thread sanitizers (SANITIZE=short, edges: parts of them)
	@tools/sanitize $(SANITIZE)

FUZZ_SECONDS ?= 600
fuzz: packages ## every reader of foreign bytes on random ones, FUZZ_SECONDS each (600)
	@tools/fuzz --seconds $(FUZZ_SECONDS)

third-party: build ## unmodified programs of others on the software GPU: tinygrad, Triton, cuda-bindings
	@tools/third-party

SEEDS ?= 1000
chaos: build ## the core under simulated faults, SEEDS runs for each policy (1000), and SEEDS of the whole node: power cuts, failing disks
	@tools/chaos --seeds $(SEEDS)
	@SEEDS=$(SEEDS) build/bin/chaos_tests --gtest_brief=1

ray: build ## all that is tested of fairlead.ray on three raylets: Serve, upgrades, lost heads; some minutes
	@tools/python-env tests/requirements.txt build/venv
	@FAIRLEAD_RAY=all build/venv/bin/python -m pytest -q tests/on_ray

KILLS ?= 1000
survive: build ## kill -9 of node, spawner, instances and device servers under load, KILLS times (1000), and as many power cuts
	@tools/python-env tests/requirements.txt build/venv
	@tools/chaos --power-cuts $(KILLS)
	@FAIRLEAD_KILLS=$(KILLS) FAIRLEAD_SPAWNER_KILLS=20 build/venv/bin/python -m pytest -q -s -k again_and_again \
	  tests/functional/test_survival.py tests/functional/test_spawner_death.py

survive-store: build ## kill -9 of 100 nodes and 20 PostgreSQL servers under events: none that was accepted is lost
	@tools/python-env tests/requirements.txt build/venv
	@FAIRLEAD_STORE_KILLS=100 FAIRLEAD_STORE_SERVER_KILLS=20 build/venv/bin/python -m pytest -q -s -k again_and_again \
	  tests/functional/test_common_store.py

STRESS_SECONDS ?= 300
stress: build ## device memory under kills, cut connections and functions of 1.9 x its size, STRESS_SECONDS each (300)
	@FAIRLEAD_STRESS_SECONDS=$(STRESS_SECONDS) build/venv/bin/python -m pytest -q -s tests/functional/test_memory_stress.py

reproduce: build ## the claims of the MQFQ-Sticky paper measured again: docs/explanation/reproduction.md, docs/explanation/ablation.md
	@tools/reproduce
	@tools/ablation

reproduce-kaas: build ## the claims of the KaaS paper measured again: docs/explanation/reproduction-kaas.md
	@tools/python-env tests/requirements.txt build/venv
	@tools/reproduce-kaas

reproduce-fluid: build ## the claims of the FluidFaaS paper measured again: docs/explanation/reproduction-fluid.md
	@tools/fluid-page

reproduce-fast: build ## the claims of the FaST-GShare paper measured again: docs/explanation/reproduction-fast.md
	@tools/python-env tests/requirements.txt build/venv
	@tools/reproduce-fast

portable: packages ## build-portable: runs on any Linux with glibc 2.35 or newer
	@tools/build portable
	@tools/lint/portable.py

package: packages ## dist/: a tarball, Debian packages and a Python wheel (docs/how-to/install.md)
	@tools/package

image: package ## dist/: an OCI image of a node, made without a daemon by debootstrap and umoci; needs root
	@tools/image

package-check: package ## each package in a clean Debian 12: install, serve, invoke, upgrade, remove, purge
	@tools/python-env tests/requirements.txt build/venv
	@FAIRLEAD_PACKAGES=all build/venv/bin/python -m pytest -q -rs --durations=0 tests/packages

clean: ## remove what was built
	@rm -rf build build-* dist
