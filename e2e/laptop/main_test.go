package laptop

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The programs under test, and the folder of the demo's files.
var sluiceProgram, simProgram string

const examples = "../../examples"

// together is how many tests wait at once. They wait for clocks, not for processors.
const together = "16"

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "sluice-e2e")
	if err != nil {
		return fail(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if out, err := exec.Command("go", "build", "-o", dir, "sluice/cmd/sluice", "sluice/cmd/providersim").CombinedOutput(); err != nil {
		return fail(fmt.Errorf("%w\n%s", err, out))
	}
	sluiceProgram, simProgram = filepath.Join(dir, "sluice"), filepath.Join(dir, "providersim")
	if err := flag.Set("test.parallel", together); err != nil {
		return fail(err)
	}
	defer watchWeather()()
	return m.Run()
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
