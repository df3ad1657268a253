package sheet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"time"

	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

// Tokens are what wakes a shard that sleeps in somebody else's hands, such as a state machine's: whoever has something for
// the shard gives the token back to where it is from. There may be more than one, because a message that hands out a token
// may come twice or late; those that are no good any more are told apart by giving them back.

const tokenPrefix = "token/"

// Token is one of a shard's tokens.
type Token struct {
	Text string
	key  table.Key
}

// SaveToken keeps a token of a shard until the given time.
func SaveToken(ctx context.Context, st *store.Store, run string, shard int, token string, until time.Time) error {
	sum := sha256.Sum256([]byte(token))
	key := table.Key{Part: shardPart(run, shard), Sort: tokenPrefix + hex.EncodeToString(sum[:8])}
	return st.Table.Put(ctx, table.Item{Key: key, Version: 1, Data: []byte(token), Expires: until}, table.Always())
}

// Tokens yields the tokens of a shard.
func Tokens(ctx context.Context, st *store.Store, run string, shard int) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		for item, err := range st.Table.Query(ctx, table.Prefix(shardPart(run, shard), tokenPrefix)) {
			if !yield(Token{string(item.Data), item.Key}, err) || err != nil {
				return
			}
		}
	}
}

// Drop forgets a token that has been given back.
func (t Token) Drop(ctx context.Context, st *store.Store) error {
	return st.Table.Delete(ctx, t.key, table.Always())
}
