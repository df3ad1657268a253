package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"sluice/internal/core/intake"
	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/local"
	"sluice/internal/providersim"
	"sluice/internal/secret"
)

// limitCase is a provider's limit, and calls that have to pass through it.
type limitCase struct {
	Rate    int
	Per     time.Duration
	Calls   int
	Nominal time.Duration // what a person expects it to take
}

// The cases, and short ones that show that the command works. A window of more than 10 s is used as a burst.
var (
	limitCases = []limitCase{{50, time.Second, 3000, time.Minute}, {600, time.Minute, 1200, time.Minute}}
	shortCases = []limitCase{{50, time.Second, 300, 6 * time.Second}, {100, 12 * time.Second, 200, 12 * time.Second}}
)

// bound is the shortest time between the first and the last of the calls that any client can reach: all of a window's
// calls at its beginning.
func (c limitCase) bound() time.Duration { return time.Duration((c.Calls-1)/c.Rate) * c.Per }

// limitScore is what became of a case.
type limitScore struct {
	limitCase
	Makespan time.Duration // from the first to the last request that the provider saw
	Refused  int
	Fullest  int // most requests in one window
	Parks    int64
}

// limitsCommand is `go run . limits`: how much of a provider's limit is used.
func limitsCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("limits", flag.ContinueOnError)
	short := flags.Bool("short", false, "smaller cases, half a minute in all")
	hidden := flags.Bool("hidden", false, "limits that nobody declared, and that have to be found; ten minutes")
	dir := flags.String("dir", ".state", "folder for the databases")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *hidden {
		return hiddenLimits(ctx, *dir, *short)
	}
	cases := limitCases
	if *short {
		cases = shortCases
	}
	var scores []limitScore
	for _, c := range cases {
		fmt.Fprintf(os.Stderr, "%d calls under %d per %v\n", c.Calls, c.Rate, c.Per)
		score, err := c.measure(ctx, *dir)
		if err != nil {
			return err
		}
		scores = append(scores, score)
	}
	printLimits(os.Stdout, scores)
	return nil
}

func printLimits(w io.Writer, scores []limitScore) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "limit\tcalls\tmakespan\tnominal\tratio\tbound\tratio\trefused\tfullest window\tparks\t")
	for _, s := range scores {
		fmt.Fprintf(table, "%d per %v\t%d\t%.2f s\t%v\t%.3f\t%v\t%.3f\t%d\t%d of %d\t%d\t\n", s.Rate, s.Per, s.Calls, s.Makespan.Seconds(),
			s.Nominal, s.Makespan.Seconds()/s.Nominal.Seconds(), s.bound(), s.Makespan.Seconds()/s.bound().Seconds(), s.Refused, s.Fullest, s.Rate, s.Parks)
	}
	table.Flush()
}

// measure runs the engine as the command line does, over HTTP on the loopback.
func (c limitCase) measure(ctx context.Context, dir string) (score limitScore, err error) {
	p, parks, err := drive(ctx, dir, providersim.Provider{Limits: []providersim.Limit{{Rate: c.Rate, Per: providersim.Duration(c.Per)}}},
		fmt.Sprintf(", limits: [{rate: %d, per: %v}]", c.Rate, c.Per), c.Calls)
	if err != nil {
		return score, err
	}
	return limitScore{limitCase: c, Makespan: p.Last.Sub(p.First), Refused: p.Refused, Fullest: p.Windows[0].Max, Parks: parks}, nil
}

// drive makes so many different calls of the provider, which is declared with these fields, and returns what it saw.
func drive(ctx context.Context, dir string, p providersim.Provider, declared string, calls int) (seen providersim.ProviderReport, parks int64, err error) {
	sim, url, stop, err := serve(p)
	if err != nil {
		return seen, 0, err
	}
	defer stop()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return seen, 0, err
	}
	if dir, err = os.MkdirTemp(dir, "limits"); err != nil {
		return seen, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	st, err := local.Open(ctx, dir)
	if err != nil {
		return seen, 0, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	job, err := run.Start(ctx, st.Store, callsOf(url, declared, calls))
	if err != nil {
		return seen, 0, err
	}
	driver := st.Driver(st.Gateway(job.Tools, secret.Env{}, "sluice-bench"), run.Settings{})
	if err := driver.Drive(ctx, job); err != nil {
		return seen, 0, err
	}
	seen = sim.Report().Providers["alpha"]
	if seen.Completed != calls || seen.Distinct != calls {
		return seen, 0, fmt.Errorf("the provider answered %d calls, %d of them different; want %d", seen.Completed, seen.Distinct, calls)
	}
	return seen, job.Run.Stats.Parks, nil
}

// serve serves a simulated provider on the loopback.
func serve(p providersim.Provider) (sim *providersim.Sim, url string, stop func(), err error) {
	p.Name, p.Kind = "alpha", "phone"
	sim, err = providersim.New(providersim.Config{Providers: []providersim.Provider{p}})
	if err != nil {
		return nil, "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, err
	}
	server := &http.Server{Handler: sim.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	return sim, "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

func callsOf(url, declared string, calls int) run.Request {
	tools := fmt.Sprintf(`version: 1
providers:
  alpha: {url: "%s/alpha", allowPrivate: true%s}
tools:
  alpha.phone: {path: "/phones/{domain}", input: {domain: string}, missing: "${status == 404}", result: "${body.phone}"}
`, url, declared)
	const text = `version: 1
name: limits
columns:
  - {name: phone, call: alpha.phone, with: {domain: "${row.domain}"}}
`
	var rows strings.Builder
	rows.WriteString("domain\n")
	for i := range calls {
		fmt.Fprintf(&rows, "company-%d.example\n", i)
	}
	return run.Request{
		Documents: sheet.Documents{MapFile: "limits.map.yaml", Map: []byte(text), ToolsFile: "tools.yaml", Tools: []byte(tools)},
		InputName: "rows.csv", Format: intake.Options{Format: intake.CSV},
		Input: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(rows.String())), nil },
	}
}
