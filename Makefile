# Klatch. `make` lists the targets. Everything needs only make and any Node >= 18 with npm: `npm ci` brings the pinned
# Node and a private PostgreSQL, and npm scripts run on that Node.
.DEFAULT_GOAL := help
.PHONY: help install run dev hooks test test-fast foreign-test faults mutants bench check types lint format docs build binary deb zip repo install-sh release package-test clean

INSTALLED := node_modules/.installed

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

$(INSTALLED): package.json package-lock.json
	@echo 'Installing the pinned Node, PostgreSQL and the libraries (about half a minute) ...'
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $@

install: $(INSTALLED) ## install what the project needs into node_modules

run: $(INSTALLED) ## set everything up and run the server on its embedded PostgreSQL (./var)
	@npm run --silent web
	@npm run --silent first-run

dev: $(INSTALLED) ## the same, started again after each change of the sources
	@node_modules/.bin/node scripts/dev.ts

hooks: $(INSTALLED) ## check types, lint, format and generated documents before each commit (git's pre-commit hook)
	@git config core.hooksPath scripts/hooks

test: $(INSTALLED) ## run all tests (one file: make test ARGS=test/http)
	@npm run --silent test -- $(ARGS)

test-fast: $(INSTALLED) ## run the tests that start no process and no server
	@node_modules/.bin/node scripts/test-fast.ts

foreign-test: $(INSTALLED) ## run the tests that need programs of Debian, which are installed (test/foreign; QUICK=1 leaves out some of the browser)
	@node_modules/.bin/node scripts/test-foreign.ts $(ARGS)

faults: $(INSTALLED) ## kill, cut off and mislead the server; docs/fault-report.md (QUICK=1, ONLY=kill,hang, OUT=file.json)
	@QUICK='$(QUICK)' ONLY='$(ONLY)' OUT='$(OUT)' FROM='$(FROM)' HOOKS='$(HOOKS)' SEED='$(SEED)' npm run --silent faults

mutants: $(INSTALLED) ## plant faults in a copy of the sources and see whether the tests notice (ONLY=name,name AREA=log,live)
	@ONLY='$(ONLY)' AREA='$(AREA)' npm run --silent mutants

bench: $(INSTALLED) ## measure, as ratios to a baseline (ONLY=intake,forward,growth,isolation,backlog,latency,fan-out,idle,presence,sync,files,push,start,callers,mutated,web) or to a commit (BASE=<commit> MINUTES=30)
	@BASE='$(BASE)' MINUTES='$(MINUTES)' npm run --silent bench -- $(ONLY)

check: $(INSTALLED) ## types, lint, format, architecture, generated documents
	@npm run --silent types
	@npm run --silent lint
	@npm run --silent format
	@npm run --silent docs -- --check
	@npm run --silent test -- test/architecture

build: $(INSTALLED) ## bundle the server into one script (build/bundle/klatch.cjs)
	@npm run --silent package -- bundle

binary: $(INSTALLED) ## the server as one program with Node inside (build/klatch)
	@npm run --silent package -- binary

deb: $(INSTALLED) ## the packages for Debian and Ubuntu, klatch and klatch-postgresql (dist/; VERSION=1.2.3)
	@npm run --silent package -- deb

zip: $(INSTALLED) ## the release zips for any GNU/Linux (dist/)
	@npm run --silent package -- zip

repo: $(INSTALLED) ## a signed apt repository of the packages in dist/ (dist/repo/; SIGNING_KEY=file or id)
	@npm run --silent package -- repo

install-sh: $(INSTALLED) ## install.sh with the key of that repository in it (dist/; REPO_URL=http://packages.example.org)
	@npm run --silent package -- install-sh

release: $(INSTALLED) ## all of these, with SHA256SUMS (dist/)
	@npm run --silent package -- release

package-test: $(INSTALLED) ## install and upgrade the packages in systems of their own, as root (QUICK=1, ARGS=test/package/zip)
	@QUICK='$(QUICK)' node_modules/.bin/node scripts/package/trial/package-test.ts $(ARGS)

clean: ## remove what was built and installed (not ./var)
	rm -rf build dist node_modules
