#!/bin/sh
# Builds the Lambda functions for both architectures: build/<arch>/<function>/bootstrap, and bootstrap.zip beside it.
# The same sources and the same Go give the same bytes: no paths, no build ids, and zips without times.
# Usage: functions/build.sh [arch...]     (default: arm64 amd64)
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- arm64 amd64
for arch in "$@"; do
	for function in runmap toolexec wake api; do
		out="build/$arch/$function"
		mkdir -p "$out"
		CGO_ENABLED=0 GOOS=linux GOARCH="$arch" go build -tags lambda.norpc -trimpath -buildvcs=false \
			-ldflags "-s -w -buildid=" -o "$out/bootstrap" "./functions/$function"
		go run ./functions/internal/zip "$out/bootstrap" "$out/bootstrap.zip"
	done
done
