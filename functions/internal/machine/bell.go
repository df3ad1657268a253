package machine

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"sluice/internal/core/run"
	"sluice/internal/core/sheet"
	"sluice/internal/core/store"
)

// Bell wakes shards whose machine waits for a token. A shard that waits for none is awake, or about to look by itself.
type Bell struct {
	Store  *store.Store
	Client *sfn.Client
}

// Ring wakes a shard. Its machine goes on with a slice, which takes what there is.
func (b Bell) Ring(ctx context.Context, at run.ShardOf) error {
	for token, err := range sheet.Tokens(ctx, b.Store, at.Run, at.Shard) {
		if err == nil {
			err = b.giveBack(ctx, token.Text)
		}
		if err != nil {
			return fmt.Errorf("waking shard %d of run %s: %w", at.Shard, at.Run, err)
		}
		_ = token.Drop(ctx, b.Store) // it expires, too
	}
	return nil
}

// giveBack ends the wait for a token. One that nobody waits for any more is as good as given back.
func (b Bell) giveBack(ctx context.Context, token string) error {
	_, err := b.Client.SendTaskSuccess(ctx, &sfn.SendTaskSuccessInput{TaskToken: &token, Output: aws.String("{}")})
	var gone *types.TaskDoesNotExist
	var late *types.TaskTimedOut
	var invalid *types.InvalidToken
	if errors.As(err, &gone) || errors.As(err, &late) || errors.As(err, &invalid) {
		return nil
	}
	return err
}
