package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"sluice/internal/core/table"
)

// What one request takes (API reference, "BatchGetItem" and "BatchWriteItem"). Both have a limit of 16 MB besides: a
// batch of 25 items of table.MaxItem stays below it, and a longer answer comes in parts.
const (
	getBatch = 100
	putBatch = 25
)

// parallel is how many batches of one operation are under way at once. It bounds memory: 4 batches hold up to 40 MB to
// write, or 64 MB that was read.
const parallel = 4

// GetMany implements table.Table.
func (t *Table) GetMany(ctx context.Context, keys []table.Key) ([]table.Item, error) {
	if err := table.CheckKeys(keys); err != nil {
		return nil, err
	}
	distinct := slices.Clone(keys)
	slices.SortFunc(distinct, func(a, b table.Key) int {
		return cmp.Or(strings.Compare(a.Part, b.Part), strings.Compare(a.Sort, b.Sort))
	})
	distinct = slices.Compact(distinct)
	var mu sync.Mutex
	var items []table.Item
	err := inBatches(ctx, distinct, getBatch, func(ctx context.Context, keys []table.Key) error {
		got, err := t.getBatch(ctx, keys)
		mu.Lock()
		defer mu.Unlock()
		items = append(items, got...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dynamo: get %d items: %w", len(keys), err)
	}
	return items, nil
}

func (t *Table) getBatch(ctx context.Context, keys []table.Key) ([]table.Item, error) {
	wanted := make([]attributes, len(keys))
	for i, key := range keys {
		wanted[i] = encodeKey(key)
	}
	var items []table.Item
	for p := newPauses(); len(wanted) > 0; {
		out, _, err := call(ctx, func(ctx context.Context) (*dynamodb.BatchGetItemOutput, error) {
			return t.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
				t.name: {Keys: wanted, ConsistentRead: aws.Bool(true)},
			}}, once)
		})
		if err != nil {
			return nil, err
		}
		now := time.Now()
		for _, a := range out.Responses[t.name] {
			item, live, err := decode(a, now)
			if err != nil {
				return nil, err
			}
			if live {
				items = append(items, item)
			}
		}
		left := out.UnprocessedKeys[t.name].Keys
		if err := p.goOn(ctx, len(wanted), len(left)); err != nil {
			return nil, err
		}
		wanted = left
	}
	return items, nil
}

// PutMany implements table.Table.
func (t *Table) PutMany(ctx context.Context, items []table.Item) error {
	if err := table.CheckAll(items); err != nil {
		return err
	}
	if err := inBatches(ctx, items, putBatch, t.putBatch); err != nil {
		return fmt.Errorf("dynamo: put %d items: %w", len(items), err)
	}
	return nil
}

func (t *Table) putBatch(ctx context.Context, items []table.Item) error {
	writes := make([]types.WriteRequest, len(items))
	for i, item := range items {
		writes[i].PutRequest = &types.PutRequest{Item: encode(item)}
	}
	for p := newPauses(); len(writes) > 0; {
		out, _, err := call(ctx, func(ctx context.Context) (*dynamodb.BatchWriteItemOutput, error) {
			return t.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
				RequestItems: map[string][]types.WriteRequest{t.name: writes},
			}, once)
		})
		if err != nil {
			return err
		}
		left := out.UnprocessedItems[t.name]
		if err := p.goOn(ctx, len(writes), len(left)); err != nil {
			return err
		}
		writes = left
	}
	return nil
}

// goOn waits before what was left unprocessed of a batch is sent again.
func (p *pauses) goOn(ctx context.Context, sent, left int) error {
	if left == 0 {
		return nil
	}
	if left < sent {
		p.reset()
	}
	if err := p.wait(ctx); err != nil {
		return fmt.Errorf("%w: DynamoDB left %d of a batch unprocessed", err, left)
	}
	return nil
}

// inBatches does a part of all at a time, several at once, until one fails.
func inBatches[T any](ctx context.Context, all []T, size int, do func(context.Context, []T) error) error {
	if len(all) == 0 {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for batch := range slices.Chunk(all, size) {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err // another batch has failed, or the caller has given up
			}
			return do(ctx, batch)
		})
	}
	return group.Wait()
}
