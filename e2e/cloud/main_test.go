package cloud

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"sluice/internal/awstest"
)

// together is how many tests wait at once. They wait for clocks, not for processors.
const together = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", together); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	awstest.Main(m)
}

// eventually waits until the condition holds.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up after %v waiting until %s", within, what)
		}
	}
}
