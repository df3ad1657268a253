#!/bin/sh
# Deploys the stack and prints its outputs as one JSON object; everything else goes to standard error. It goes where the
# environment says: to AWS_ENDPOINT_URL if that is set (an emulator), else to the AWS account of the credentials.
# Further arguments go to the CDK command: e2e/deploy.sh -c sluice:architecture=amd64 -c sluice:keepData=false
set -eu
cd "$(dirname "$0")/.."
work=$PWD/build/cdk
mkdir -p "$work"

for tool in go npm; do
	command -v "$tool" >/dev/null || { echo "deploy: $tool is needed" >&2; exit 3; }
done

# No script of a package runs: what it would build is an option that we do not use.
if test "$(cat "$work/installed" 2>/dev/null)" != "$(cksum <infra/cdk/package-lock.json)"; then
	(cd infra/cdk && npm ci --silent --ignore-scripts --no-audit --no-fund) >&2
	cksum <infra/cdk/package-lock.json >"$work/installed"
fi
(cd infra/cdk && go build -o "$work/app" .) >&2

export CDK_DISABLE_CLI_TELEMETRY=true
if test -n "${AWS_ENDPOINT_URL:-}"; then
	# An emulator takes any credentials, but some there must be. Buckets are found in the path, not in the host's name.
	export AWS_ENDPOINT_URL_S3="${AWS_ENDPOINT_URL_S3:-$AWS_ENDPOINT_URL}"
	export AWS_ACCESS_KEY_ID="${AWS_ACCESS_KEY_ID:-test}" AWS_SECRET_ACCESS_KEY="${AWS_SECRET_ACCESS_KEY:-test}"
	export AWS_REGION="${AWS_REGION:-us-east-1}"
fi

cdk() {
	(cd infra/cdk && node_modules/.bin/cdk "$@" --app "$work/app" --output "$work/out" --no-notices --no-version-reporting --ci=false) >&2
}
rm -f "$work/outputs.json"
cdk bootstrap "$@"
cdk deploy --all --method direct --require-approval never --outputs-file "$work/outputs.json" "$@"

# The file has the outputs by stack; there is one stack.
node -e 'console.log(JSON.stringify(Object.values(JSON.parse(require("fs").readFileSync(0)))[0], null, 2))' <"$work/outputs.json"
