package laptop

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The bound on peak memory, whatever the table's length; and how far a run with ten times the rows may lie above a short
// one: a tenth, and what a short run has no use for: SQLite's page cache (16 MB), and a heap that is half full.
const (
	mostMemory = 256 << 20
	unused     = 24 << 20
)

// Not parallel: it wants the processor for itself, before the tests that wait.
func TestMemoryStaysFlat(t *testing.T) {
	short, long := peakMemory(t, 20_000), peakMemory(t, 200_000)
	t.Logf("peak memory: %d MB with 20,000 rows, %d MB with 200,000", short>>20, long>>20)
	if long > short*11/10+unused {
		t.Errorf("peak memory grows with the table: from %d to %d MB", short>>20, long>>20)
	}
	if long > mostMemory {
		t.Errorf("peak memory of %d MB", long>>20)
	}
}

// peakMemory runs a map with one value column over so many rows, and returns the process's largest resident size.
func peakMemory(t *testing.T, rows int) int64 {
	t.Helper()
	d := newDesk(t)
	d.write("map.yaml", "version: 1\nname: memory\ncolumns:\n  - {name: domain, value: '${row.email.split(\"@\")[1]}'}\n")
	var in, want strings.Builder
	in.WriteString("email,name\n")
	want.WriteString("email,name,domain\n")
	for i := range rows {
		fmt.Fprintf(&in, "person%d@company%d.example,Person %d\n", i, i%1000, i)
		fmt.Fprintf(&want, "person%d@company%d.example,Person %d,company%d.example\n", i, i%1000, i, i%1000)
	}
	d.write("in.csv", in.String())
	p := d.sluice("run", "map.yaml", "--in", "in.csv", "--out", "out.csv", "--quiet").want(0, 2*time.Minute)
	if d.read("out.csv") != want.String() {
		t.Error("the table is wrong")
	}
	usage, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Skip("this system does not tell peak memory")
	}
	return usage.Maxrss * maxrssUnit()
}

// maxrssUnit: Linux and most others count in KB, macOS in bytes.
func maxrssUnit() int64 {
	if _, err := os.Stat("/proc/self"); err == nil {
		return 1 << 10
	}
	return 1
}
