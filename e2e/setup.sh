#!/bin/sh
# Installs what the tests of the cloud adapters run against into build/: `setup.sh python` an environment with ministack,
# `setup.sh node` the packages of e2e/node; without arguments, both. What is there already is left alone.
set -eu
cd "$(dirname "$0")/.."

need() {
	command -v "$1" >/dev/null || { echo "setup: $1 is needed ($2)" >&2; exit 3; }
}

# stale STAMP FILE...: whether the files differ from what STAMP says was installed.
stale() {
	stamp=$1; shift
	test "$(cat "$stamp" 2>/dev/null)" != "$(cat "$@" | cksum)"
}

install_python() {
	need python3 "3.10 or newer, with venv: https://www.python.org"
	stale build/venv/.installed e2e/python/requirements.txt || return 0
	echo "setup: ministack into build/venv" >&2
	rm -rf build/venv
	python3 -m venv build/venv
	build/venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r e2e/python/requirements.txt
	cksum <e2e/python/requirements.txt >build/venv/.installed
}

install_node() {
	need npm "with Node 20 or newer: https://nodejs.org"
	stale build/node/.installed e2e/node/package.json e2e/node/package-lock.json || return 0
	echo "setup: npm packages into build/node" >&2
	rm -rf build/node
	mkdir -p build/node
	cp e2e/node/package.json e2e/node/package-lock.json build/node/
	# No script of a package runs: what it would build is an option that we do not use.
	(cd build/node && npm ci --silent --ignore-scripts --no-audit --no-fund)
	cat e2e/node/package.json e2e/node/package-lock.json | cksum >build/node/.installed
}

test $# -gt 0 || set -- python node
for part; do
	case $part in
	python | node) "install_$part" ;;
	*) echo "setup: $part is neither python nor node" >&2; exit 2 ;;
	esac
done
