// Package examples_test keeps the example files true: they are valid, and they are what their scripts write.
package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sluice/internal/core/mapspec"
)

func TestExamplesAreValid(t *testing.T) {
	for mapFile, toolsFile := range map[string]string{"leads.map.yaml": "tools.yaml", "report.map.yaml": "report.tools.yaml"} {
		tools, err := mapspec.ParseTools(toolsFile, read(t, toolsFile))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mapspec.ParseMap(mapFile, read(t, mapFile), tools); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTablesAreWhatTheScriptsWrite(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	dir := t.TempDir()
	for _, name := range []string{"leads", "expected"} {
		if out, err := exec.Command(python, name+".py", dir).CombinedOutput(); err != nil {
			t.Fatalf("%s.py: %v\n%s", name, err, out)
		}
		if !bytes.Equal(read(t, name+".csv"), read(t, filepath.Join(dir, name+".csv"))) {
			t.Errorf("%s.csv is not what %s.py writes", name, name)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
