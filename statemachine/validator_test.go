package statemachine_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// asl-validator knows the grammar of the language better than these tests do. It is installed from the lock file here.
func TestValidatorAcceptsTheMachines(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("npm is not installed, so the machines are not checked by asl-validator (Node 20 or newer: https://nodejs.org)")
	}
	if err != nil {
		t.Fatal(err)
	}
	validator := install(t, npm)
	for _, file := range files {
		if out, err := exec.Command(validator, "--json-path", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
	broken := filepath.Join(t.TempDir(), "broken.asl.json")
	if err := os.WriteFile(broken, []byte(`{"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(validator, "--json-path", broken).CombinedOutput(); err == nil {
		t.Errorf("a machine whose next state is missing is accepted:\n%s", out)
	}
}

// install makes build/asl-validator what the lock file says, once, and returns the command. No script of a package runs.
func install(t *testing.T, npm string) string {
	t.Helper()
	folder, err := filepath.Abs("../build/asl-validator")
	if err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(folder, "node_modules", ".bin", "asl-validator")
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if installed, _ := os.ReadFile(filepath.Join(folder, "installed")); bytes.Equal(installed, lock) {
		return command
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ci := exec.Command(npm, "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund")
	ci.Dir = folder
	if out, err := ci.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(folder, "installed"), lock, 0o600); err != nil {
		t.Fatal(err)
	}
	return command
}
