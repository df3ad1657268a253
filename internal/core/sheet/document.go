package sheet

import (
	"context"
	"encoding/json"
	"fmt"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Documents are a run's map and tool catalogue as the user wrote them, kept so that a run is resumed by what it was
// started with, whatever has become of the files.
type Documents struct {
	MapFile   string `json:"mapFile"`
	Map       []byte `json:"map"`
	ToolsFile string `json:"toolsFile"`
	Tools     []byte `json:"tools,omitempty"`
}

// SaveDocuments stores them; they are written before the run's record, so that no record is without them.
func SaveDocuments(ctx context.Context, st *store.Store, id string, d Documents) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return st.Save(ctx, documentKey(id, "source"), 1, frame.Seal(b), table.Always())
}

// LoadDocuments reads them back.
func LoadDocuments(ctx context.Context, st *store.Store, id string) (Documents, error) {
	var d Documents
	b, _, err := st.Load(ctx, documentKey(id, "source"))
	if err != nil {
		return d, fmt.Errorf("map of run %s: %w", id, err)
	}
	if b, err = frame.Open(b); err != nil {
		return d, fmt.Errorf("map of run %s: %w", id, err)
	}
	return d, json.Unmarshal(b, &d)
}
