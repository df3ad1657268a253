package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"sluice/internal/core/gateway"
	"sluice/internal/core/mapspec"
	"sluice/internal/local"
	"sluice/internal/secret"
	"sluice/resolvers"
)

// The exit codes, which scripts rely on.
const (
	exitOK          = 0   // of a run: every row completed
	exitFailed      = 1   // the run failed, was cancelled or is paused, or the command could not be carried out
	exitUsage       = 2   // wrong arguments, or a mistake in the files that were given
	exitRowsFailed  = 3   // the run finished, and some rows failed
	exitInterrupted = 130 // stopped by Ctrl-C; a run is parked
)

// app is the program with its surroundings, so that a test can stand in for them.
type app struct {
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	signals <-chan os.Signal
	secrets gateway.Secrets // nil: the environment
	getenv  func(string) string
}

// grammar is the command line.
type grammar struct {
	Run      runCmd      `cmd:"" help:"Run a map over a table: fill its columns for every row."`
	Validate validateCmd `cmd:"" help:"Check a map, its tools and an input's columns without running anything."`
	Resume   resumeCmd   `cmd:"" help:"Go on with a run that is parked or paused, or was interrupted."`
	Runs     runsCmd     `cmd:"" help:"List the runs, or show one of them."`
	Rows     rowsCmd     `cmd:"" help:"Show a run's rows as far as they have come, also while it is at work."`
	Export   exportCmd   `cmd:"" help:"Write the finished table of a run."`
	Tools    toolsCmd    `cmd:"" help:"Make one call of a tool and print its result as JSON."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
	Cancel   cancelCmd   `cmd:"" help:"Stop a run for good, at once; what is finished is kept."`
	Pause    pauseCmd    `cmd:"" help:"Stop a run until it is resumed."`
	Retry    retryCmd    `cmd:"" help:"Run the failed rows of a run again, and no others."`
	Answer   answerCmd   `cmd:"" help:"Answer an event that rows wait for."`
	Serve    serveCmd    `cmd:"" help:"Serve the API and the page that shows runs, and work on the runs that it starts."`
}

const description = `Sluice runs row maps: it takes a table, fills columns by calling rate-limited APIs within their limits, and keeps
every result on disk, so that nothing is lost and nothing is paid for twice.

Start with:
  sluice run leads.map.yaml --tools tools.yaml --in leads.csv --out enriched.csv

Exit codes: 0 every row completed, 1 the run failed, was cancelled or is paused, 2 wrong usage,
3 some rows failed, 130 parked by Ctrl-C.`

// exit is an error that ends the program with a code. A nil err has been told already.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage marks a mistake of the user's.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exit{exitUsage, err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// run carries one command out and returns its exit code.
func (a *app) run(args []string) (code int) {
	type helpShown struct{}
	afterHelp := exitOK
	defer func() {
		switch r := recover().(type) {
		case nil:
		case helpShown:
			code = afterHelp
		default:
			panic(r)
		}
	}()
	var g grammar
	parser, err := kong.New(&g, kong.Name("sluice"), kong.Description(description), kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(int) { panic(helpShown{}) }), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.Vars{"state": local.DefaultDir})
	if err != nil {
		return a.fail(err)
	}
	if len(args) == 0 {
		args, afterHelp = []string{"--help"}, exitUsage // it was not asked for
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return a.fail(usagef("%w (sluice --help shows the commands, sluice COMMAND --help their flags)", err))
	}
	return a.fail(parsed.Run(a))
}

// fail prints the error and returns its exit code.
func (a *app) fail(err error) int {
	if err == nil {
		return exitOK
	}
	code := exitFailed
	var e *exit
	if errors.As(err, &e) {
		code = e.code
		if e.err == nil {
			return code
		}
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(a.stderr, "sluice: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(a.stderr, "sluice: "+cleanLines(err.Error()))
	return code
}

// context is cancelled by the first signal, for commands that have nothing to save.
func (a *app) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-a.signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// open opens the state for a command that looks at runs, create also for one that starts something.
func (a *app) open(ctx context.Context, dir string) (*local.State, error) {
	return a.opened(local.OpenExisting(ctx, dir))
}

func (a *app) create(ctx context.Context, dir string) (*local.State, error) {
	return a.opened(local.Open(ctx, dir))
}

// bodyMemory names the variable that says how many bytes of answers are held at once.
const bodyMemory = "SLUICE_BODY_MEMORY"

func (a *app) opened(st *local.State, err error) (*local.State, error) {
	if errors.Is(err, local.ErrNoState) || errors.Is(err, local.ErrNotFolder) {
		return nil, usage(err)
	}
	if err == nil {
		st.Resolvers = resolvers.All()
	}
	if size := a.getenv(bodyMemory); size != "" && err == nil {
		if st.BodyMemory, err = mapspec.ParseSize(size); err != nil {
			return nil, errors.Join(usagef("%s is %q: %w", bodyMemory, size, err), st.Close())
		}
	}
	return st, err
}

func (a *app) secretsSource() gateway.Secrets {
	if a.secrets != nil {
		return a.secrets
	}
	return secret.Env{}
}

// isTerminal reports whether w is a terminal that a person looks at.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// stateFlag is shared by the commands that work here.
type stateFlag struct {
	State string `placeholder:"DIR" default:"${state}" help:"Folder that keeps runs and results (one SQLite file, and large values beside it)."`
}
