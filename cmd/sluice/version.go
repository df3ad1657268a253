package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3". Otherwise the build's own information tells.
var version string

type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(a *app) error {
	_, err := fmt.Fprintf(a.stdout, "sluice %s (%s, %s/%s)\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if version != "" || !ok {
		return cmp.Or(version, "unknown")
	}
	text := info.Main.Version
	if text == "" || text == "(devel)" {
		text = "devel"
		var revision, dirty string
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = "+" + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = ".dirty"
			}
		}
		text += revision + dirty
	}
	return text
}

func userAgent() string { return "sluice/" + versionText() }
