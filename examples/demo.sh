#!/usr/bin/env bash
# Runs the demo from start to end against simulated providers, in build/demo. `make demo` builds the commands first.
set -euo pipefail
cd "$(dirname "$0")/.."

work=build/demo # fresh each time, and left for a look at it afterwards
rm -rf "$work"
mkdir -p "$work"
sim=
stop() { [ -z "$sim" ] || kill "$sim" 2>/dev/null || true; }
trap stop EXIT

say() { printf '\n== %s\n' "$*"; }

# serve starts the simulator and waits until it says where it listens; it sets address, or fails.
serve() {
	bin/providersim --listen "$1" 2>"$work/sim" &
	sim=$!
	address=
	for _ in $(seq 50); do
		address=$(sed -n 's|.*serving on http://\([^;]*\);.*|\1|p' "$work/sim")
		[ -z "$address" ] || return 0
		kill -0 "$sim" 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}

tools=examples/tools.yaml
if ! serve 127.0.0.1:8089; then
	serve 127.0.0.1:0 || { cat "$work/sim" >&2; exit 1; }
	echo "Port 8089 is taken; the simulated providers listen on $address, in a copy of tools.yaml that says so."
	sed "s/127\.0\.0\.1:8089/$address/" examples/tools.yaml >"$work/tools.yaml"
	tools=$work/tools.yaml
fi

say "A map, four providers, 642 contacts (about a minute: acme answers 150 questions a minute, and 208 are asked)"
export ACME_KEY=demo-acme ALPHA_KEY=demo-alpha BETA_KEY=demo-beta MAIL_KEY=demo-mail
run=(bin/sluice run examples/leads.map.yaml --tools "$tools" --in examples/leads.csv
	--out "$work/enriched.csv" --state "$work/state" --run demo)
printf '$ '
echo "${run[@]}"
code=0
"${run[@]}" || code=$?
case $code in
0 | 3) ;;
*) echo "demo: sluice run ended with exit code $code; see above." >&2; exit 1 ;;
esac

say "The first lines of $work/enriched.csv"
head -n 6 "$work/enriched.csv"

say "The rows that failed (five by design: their companies no longer exist; hence exit code $code of sluice run)"
echo "\$ bin/sluice rows demo --status failed --state $work/state | cut -c 1-120"
bin/sluice rows demo --status failed --state "$work/state" | cut -c 1-120

say "Checks"
# Cell by cell; of a failure, expected.csv tells column and code, and the rest is the provider's message.
if ! command -v python3 >/dev/null; then
	echo "(without python3, the table is not compared with examples/expected.csv)"
elif ! python3 - "$work/enriched.csv" examples/expected.csv <<'END'; then
import csv, sys
got, want = (list(csv.reader(open(name, encoding="utf-8", newline=""))) for name in sys.argv[1:])
for row in got:
    row[-1] = ": ".join(row[-1].split(": ")[:2])
for i, pair in enumerate(zip(got, want)):
    if pair[0] != pair[1]:
        sys.exit("demo: row %d is %s, expected was %s" % (i, *pair))
if len(got) != len(want):
    sys.exit("demo: %d rows, expected were %d" % (len(got), len(want)))
print("enriched.csv is, cell by cell, the table that examples/expected.py works out without Sluice: %d rows." % (len(got) - 1))
END
	exit 1
fi

# The report of the simulator: it counts each request, and says which came too early.
exec 3<>"/dev/tcp/${address%:*}/${address##*:}"
printf 'GET /_report HTTP/1.0\r\n\r\n' >&3
cat <&3 >"$work/report"
echo "What the providers saw:"
tr -d ' \n\t' <"$work/report" |
	grep -oE '"[a-z]+":\{"received":[0-9]+|"(refused|tooEarly|completed)":[0-9]+|"completedTwice":(null|\[[^]]*\])' |
	sed -E 's/^"([a-z]+)":\{"received":/name \1 /; s/^"([a-zA-Z]+)":/\1 /; s/(null|\[\])$/no/; s/\[.+\]$/SOME/' |
	awk '$1 == "name" { name = $2; received = $3 }
		$1 == "refused" { refused = $2 }
		$1 == "completed" { completed = $2 }
		$1 == "tooEarly" { early = $2 }
		$1 == "completedTwice" && received > 0 {
			printf "  %-6s %4d requests, %4d answered, %d faster than its limits, %d before an announced time, %s answer twice\n", name, received, completed, refused, early, $2 }'
