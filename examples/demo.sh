#!/usr/bin/env bash
# Runs the demo from start to end against simulated providers, in a fresh folder. `make demo` builds the commands first.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
sim=
stop() {
	[ -z "$sim" ] || kill "$sim" 2>/dev/null || true
	rm -rf "$work"
}
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
echo "sluice run examples/leads.map.yaml --tools examples/tools.yaml --in examples/leads.csv --out enriched.csv"
export ACME_KEY=demo-acme ALPHA_KEY=demo-alpha BETA_KEY=demo-beta MAIL_KEY=demo-mail
code=0
bin/sluice run examples/leads.map.yaml --tools "$tools" --in examples/leads.csv \
	--out "$work/enriched.csv" --state "$work/state" --run demo || code=$?
case $code in
0 | 3) ;;
*) echo "demo: sluice run ended with exit code $code; see above." >&2; exit 1 ;;
esac

say "The first lines of enriched.csv"
head -n 6 "$work/enriched.csv"

say "The rows that failed (five by design: their companies no longer exist; hence exit code $code of sluice run)"
bin/sluice rows demo --status failed --state "$work/state" | cut -c 1-150

say "Checks"
if cmp "$work/enriched.csv" examples/expected.csv; then
	echo "enriched.csv is, byte for byte, the table that examples/expected.py works out without Sluice."
else
	echo "demo: enriched.csv is not examples/expected.csv." >&2
	exit 1
fi

# What the providers saw. "Too fast" is a call that came before a limit or an announced deadline allowed it.
exec 3<>"/dev/tcp/${address%:*}/${address##*:}"
printf 'GET /_report HTTP/1.0\r\n\r\n' >&3
cat <&3 >"$work/report"
echo "What the providers saw:"
tr -d ' \n\t' <"$work/report" | grep -oE '"(received|refused|tooEarly)":[0-9]+|"[a-z]+":\{"received"|"completedTwice":(null|\[[^]]*\])' |
	sed -E 's/^"([a-z]+)":\{"received"$/NAME \1/; s/^"([a-zA-Z]+)":(.*)$/\1 \2/; s/ (null|\[\])$/ 0/; s/ \[.+\]$/ some/' |
	awk '$1 == "NAME" { name = $2; next }
		$1 == "received" { received = $2 }
		$1 == "refused" { refused = $2 }
		$1 == "tooEarly" { early = $2 }
		$1 == "completedTwice" { printf "  %-6s %4s requests, %s too fast, %s before an announced time, %s paid for twice\n", name, received, refused, early, $2 }'
