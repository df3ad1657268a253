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

// SaveDocuments stores them; they are written before the run's record, so that no record is without them. They are
// kept by their digest: of two starts of one id with different maps, the loser does not leave its own behind.
func (r *Run) SaveDocuments(ctx context.Context, st *store.Store, d Documents) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return st.Save(ctx, documentKey(r), 1, frame.Seal(b), table.Always())
}

// Documents reads them back.
func (r *Run) Documents(ctx context.Context, st *store.Store) (Documents, error) {
	var d Documents
	b, _, err := st.Load(ctx, documentKey(r))
	if err != nil {
		return d, fmt.Errorf("map of run %s: %w", r.ID, err)
	}
	if b, err = frame.Open(b); err != nil {
		return d, fmt.Errorf("map of run %s: %w", r.ID, err)
	}
	return d, json.Unmarshal(b, &d)
}
