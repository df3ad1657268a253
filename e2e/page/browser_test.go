package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// chromium is the browser that all tests share; each test looks through a profile of its own.
var chromium context.Context

func TestMain(m *testing.M) {
	path, err := findBrowser()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...) // in a folder of its own, which goes with it
	chromium, _ = chromedp.NewContext(ctx)
	if err := chromedp.Do(chromium); err != nil {
		fmt.Fprintln(os.Stderr, "the browser does not start:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = chromedp.Cancel(chromium)
	cancel()
	if program.path != "" {
		_ = os.RemoveAll(filepath.Dir(program.path))
	}
	os.Exit(code)
}

func findBrowser() (string, error) {
	if path := os.Getenv("SLUICE_E2E_BROWSER"); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("these tests need Chromium or Chrome, and there is none on the path (Debian: apt-get install chromium)")
}
