// Command providersim serves simulated, rate-limited providers to try maps against.
//
//	providersim                       serve the providers of examples/ on 127.0.0.1:8089
//	curl localhost:8089/_report       what they were asked, and whether anything came too early
//	curl -d '{"provider": "alpha", "seconds": 180}' localhost:8089/_control/outage
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sluice/internal/providersim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "providersim:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("providersim", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8089", "`address` to serve on; port 0 takes a free one")
	config := flags.String("config", "", "JSON `file` that describes the providers; default: those of the demo")
	logFile := flags.String("log", "", "`file` that gets one JSON line for each request")
	show := flags.Bool("print-config", false, "print the configuration and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg, err := load(*config)
	if err != nil {
		return err
	}
	if *show {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(cfg)
	}
	sim, err := providersim.New(cfg)
	if err != nil {
		return err
	}
	if *logFile != "" {
		f, err := os.OpenFile(*logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		sim.LogTo(f)
	}
	return serve(ctx, *listen, sim.Handler())
}

func load(file string) (providersim.Config, error) {
	if file == "" {
		return providersim.Demo(), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return providersim.Config{}, err
	}
	return providersim.ParseConfig(b)
}

// serve answers until the context ends.
func serve(ctx context.Context, address string, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "providersim: serving on http://%s; report at /_report\n", l.Addr())
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer done()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
