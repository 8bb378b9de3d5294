# One command for every gate. `make ready` before every commit.

SWIFT_SOURCES := Sources Tests Package.swift
SCRIPTS := deploy/run deploy/test deploy/test-compose deploy/install deploy/versions.sh deploy/change.sh \
  deploy/upgrade-yt-dlp deploy/prerequisites.sh .ci/run

.DEFAULT_GOAL := help
.PHONY: help run build format lint test e2e bench ready clean

help: ## this list
	@sed -n 's/^\([a-z0-9]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 10

run: ## build and start both processes; ARGS="--media DIR" for your own music
	deploy/run $(ARGS)

build: ## build both processes and all tests, release
	swift build -c release --build-tests

format: ## rewrite the Swift sources in the one format
	swift format --in-place --parallel -r $(SWIFT_SOURCES)

lint: ## check the Swift sources' format, and the scripts with shellcheck where there is one
	swift format lint --strict --parallel -r $(SWIFT_SOURCES)
	@if command -v shellcheck > /dev/null; then shellcheck -x $(SCRIPTS); else echo 'no shellcheck: scripts not checked'; fi

test: ## the Swift tests
	swift test -c release --disable-xctest

e2e: build ## the end-to-end tests with the release binaries; ARGS="-k seek" for some of them
	.venv/bin/python -m pytest Tests/EndToEnd $(ARGS)

bench: ## the benchmarks; takes minutes and wants an idle machine
	Tests/Benchmarks/run $(ARGS)

ready: ## every gate, as CI runs it
	deploy/test

clean: ## forget everything built
	rm -rf .build .venv
