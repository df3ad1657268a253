package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Secret signs links. It is made at random when it is first needed, and kept in the table: everything that works with the
// table makes and takes the same links, and nothing else does. Deleting its item makes all links worthless.
type Secret []byte

const secretBytes = 32

var secretKey = table.Key{Part: "secret", Sort: "links"}

// Load returns the secret of a store.
func Load(ctx context.Context, st *store.Store) (Secret, error) {
	item, err := st.Table.Get(ctx, secretKey)
	if errors.Is(err, table.ErrNotFound) {
		fresh := make([]byte, secretBytes)
		_, _ = rand.Read(fresh) // never fails, by its documentation
		err = st.Table.Put(ctx, table.Item{Key: secretKey, Version: 1, Data: fresh}, table.Absent())
		if err == nil || errors.Is(err, table.ErrConflict) { // somebody else may have been faster
			item, err = st.Table.Get(ctx, secretKey)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the secret of links: %w", err)
	}
	if len(item.Data) != secretBytes {
		return nil, fmt.Errorf("%w: the secret of links has %d bytes", store.ErrDamaged, len(item.Data))
	}
	return item.Data, nil
}
