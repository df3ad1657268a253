package memory_test

import (
	"testing"

	"sluice/internal/core/blob"
	"sluice/internal/core/blob/blobtest"
	"sluice/internal/memory"
)

func TestBlobContract(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return memory.NewBlobs() })
}
