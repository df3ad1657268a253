package cloud

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// program is the command line, built once.
var program = sync.OnceValues(func() (string, error) {
	to, err := filepath.Abs(filepath.Join(root, "build", "e2e", "sluice"))
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "build", "-o", to, root+"/cmd/sluice").CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return to, nil
})

// said is what the command line came to.
type said struct {
	code     int
	out, err string
}

// cli runs the command line in a folder, against the deployment unless the arguments name a folder of this machine.
func (s *stack) cli(t *testing.T, dir string, args ...string) said {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SLUICE_API_URL="+s.url, "SLUICE_API_KEY="+s.key)
	var out, told strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &told
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("sluice %s: %v", strings.Join(args, " "), err)
	}
	return said{cmd.ProcessState.ExitCode(), out.String(), told.String()}
}

// sluice is cli, of a command that must succeed.
func (s *stack) sluice(t *testing.T, args ...string) string {
	t.Helper()
	got := s.cli(t, "", args...)
	if got.code != 0 {
		t.Fatalf("sluice %s: exit code %d\n%s%s", strings.Join(args, " "), got.code, got.out, got.err)
	}
	return got.out
}

// write makes a file.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The command line says the same, and writes the same, whether it works itself or has the deployment work.
func TestExitCodesAreTheLaptops(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	const numbers = "version: 1\nname: numbers\ncolumns:\n  - {name: twice, value: \"${int(row.n) * 2}\"}\n"
	for name, c := range map[string]struct {
		m, in string
		code  int
	}{
		"whole":       {numbers, "n\n1\n2\n", 0},
		"rows failed": {numbers, "n\n1\nx\n3\n", 3},
		"run failed":  {numbers + "onRowError: fail\n", "n\n1\nx\n3\n", 1},
		"wrong map":   {"version: 1\ncolums: []\n", "n\n1\n", 2},
		"wrong input": {numbers, "n\n1\n2,3\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "map.yaml", c.m)
			write(t, dir, "in.csv", c.in)
			tables := map[string]string{}
			for where, more := range map[string][]string{"here": {"--state", "state"}, "there": nil} {
				got := s.cli(t, dir, append([]string{"run", "map.yaml", "--in", "in.csv", "--out", where + ".csv", "--run", strings.ReplaceAll(named(name), " ", "-")}, more...)...)
				if got.code != c.code {
					t.Errorf("%s: exit code %d, want %d; it said\n%s", where, got.code, c.code, got.err)
				}
				if b, err := os.ReadFile(filepath.Join(dir, where+".csv")); err == nil {
					tables[where] = string(b)
				}
			}
			if tables["here"] != tables["there"] || (tables["there"] != "") != (c.code == 0 || c.code == 3) {
				t.Errorf("the tables: %q", tables)
			}
		})
	}
}
