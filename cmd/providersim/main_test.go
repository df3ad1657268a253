package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"--listen", "127.0.0.1:0", "--log", filepath.Join(t.TempDir(), "log")}); err != nil {
		t.Error(err)
	}
}

func TestRunRefuses(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"providers": [{"name": "a", "kind": "x"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"--config", bad}, "unknown kind"},
		{[]string{"--config", bad + "x"}, "no such file"},
		{[]string{"--listen", "nowhere"}, "nowhere"},
	} {
		if err := run(t.Context(), tt.args); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: %v, want %q", tt.args, err, tt.says)
		}
	}
}
