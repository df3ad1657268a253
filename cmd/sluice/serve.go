package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"sluice/internal/local"
	"sluice/internal/page"
	"sluice/internal/serve"
)

type serveCmd struct {
	Addr    string `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to listen at; port 0 is any that is free."`
	Key     string `env:"SLUICE_SERVE_KEY" placeholder:"KEY" help:"Key that requests must carry in x-api-key; needed where the address can be reached from other machines. Better given as SLUICE_SERVE_KEY, since a command line can be seen by others."`
	URL     string `name:"url" placeholder:"URL" help:"Where people reach this server, for the links by which they answer events; default: its address."`
	Public  bool   `name:"allow-public" help:"Give what maps publish with public: true to whoever asks, without a key."`
	Verbose bool   `help:"Log each request."`
	stateFlag
}

// Help implements kong.HelpProvider.
func (*serveCmd) Help() string {
	return `Examples:
  sluice serve
  sluice run leads.map.yaml --tools tools.yaml --in leads.csv --api http://127.0.0.1:8080
  SLUICE_SERVE_KEY=... sluice serve --addr 0.0.0.0:8080

The page at the address shows the runs of the state folder. Runs that are started through the API are worked on here, several
at once; those that were at work when the server stopped are taken up again. The environment of the server has the
secrets of the providers: whoever may ask it can use them.

Ctrl-C parks the runs: nothing is lost. A second one stops at once.`
}

// minKey is the shortest key that is worth the name.
const minKey = 16

// Run implements the command.
func (c *serveCmd) Run(a *app) error {
	switch {
	case !serve.Loopback(c.Addr) && c.Key == "":
		return usagef("--addr %s can be reached from other machines: set a key in SLUICE_SERVE_KEY, which requests then carry in x-api-key", c.Addr)
	case c.Key != "" && len(c.Key) < minKey:
		return usagef("the key has %d characters; give it %d or more, such as from `openssl rand -hex 24`", len(c.Key), minKey)
	}
	i := a.interruption()
	defer i.end()
	st, err := a.create(i.ctx, c.State)
	if err != nil {
		return err
	}
	return errors.Join(c.serve(a, i, st), st.Close())
}

func (c *serveCmd) serve(a *app, i *interruption, st *local.State) error {
	l, err := (&net.ListenConfig{}).Listen(i.ctx, "tcp", c.Addr)
	if err != nil {
		return usagef("--addr %s: %w", c.Addr, err)
	}
	requests := slog.LevelError
	if c.Verbose {
		requests = slog.LevelInfo
	}
	s := serve.New(serve.Options{
		State: st, Secrets: a.secretsSource(), UserAgent: userAgent(), Key: c.Key, Page: page.Handler(), AllowPublic: c.Public, URL: cmp.Or(c.URL, address(l, c.Addr)),
		Log:      slog.New(slog.NewTextHandler(a.stderr, nil)),
		Requests: slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: requests})),
	})
	fmt.Fprintf(a.stderr, "sluice: serving %s, state %s; Ctrl-C parks the runs and ends\n", address(l, c.Addr), clean(c.State))
	i.working(func(line string) { fmt.Fprintln(a.stderr, line) })
	if err := s.Serve(i.ctx, l, i.stop); err != nil {
		return err
	}
	if errors.Is(i.ctx.Err(), context.Canceled) {
		return &exit{exitInterrupted, errors.New("stopped at once; what was saved stays")}
	}
	return nil
}

// address is where the server can be asked, in the words of --addr.
func address(l net.Listener, addr string) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	host, _, _ := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return "http://" + net.JoinHostPort(host, port)
}
