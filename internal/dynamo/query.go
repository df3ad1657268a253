package dynamo

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sluice/internal/core/table"
)

// Query implements table.Table. It reads a page (1 MB) when its first item is asked for.
func (t *Table) Query(ctx context.Context, q table.Query) iter.Seq2[table.Item, error] {
	return func(yield func(table.Item, error) bool) {
		if err := table.CheckQuery(q); err != nil {
			yield(table.Item{}, err)
			return
		}
		if q.To != "" && q.From >= q.To {
			return
		}
		left := q.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		for item, err := range t.pages(ctx, q) {
			left--
			if !yield(item, err) || err != nil || left == 0 {
				return
			}
		}
	}
}

// pages yields what the query selects without regard to its limit, except that it does not read much more.
func (t *Table) pages(ctx context.Context, q table.Query) iter.Seq2[table.Item, error] {
	return func(yield func(table.Item, error) bool) {
		input := t.queryInput(q)
		for {
			out, _, err := call(ctx, func(ctx context.Context) (*dynamodb.QueryOutput, error) {
				return t.client.Query(ctx, input, once)
			})
			if err != nil {
				yield(table.Item{}, fmt.Errorf("dynamo: query %s: %w", q.Part, err))
				return
			}
			now := time.Now()
			for _, a := range out.Items {
				item, live, err := decode(a, now)
				switch {
				case err != nil:
					yield(table.Item{}, err)
					return
				case !live, q.To != "" && item.Sort == q.To: // BETWEEN takes its upper end in
				case !yield(item, nil):
					return
				}
			}
			if len(out.LastEvaluatedKey) == 0 {
				return
			}
			input.ExclusiveStartKey = out.LastEvaluatedKey
			if input.Limit != nil { // what came was hidden in part; behind many of those, small pages would take forever
				input.Limit = pageLimit(2 * int(*input.Limit))
			}
		}
	}
}

func (t *Table) queryInput(q table.Query) *dynamodb.QueryInput {
	input := &dynamodb.QueryInput{
		TableName:                 &t.name,
		ConsistentRead:            aws.Bool(true),
		ScanIndexForward:          aws.Bool(!q.Reverse),
		ExpressionAttributeValues: attributes{":part": text(q.Part)},
	}
	cond := "p = :part"
	switch {
	case q.From != "" && q.To != "":
		cond += " AND s BETWEEN :from AND :to" // only one condition may be set on a sort key
	case q.From != "":
		cond += " AND s >= :from"
	case q.To != "":
		cond += " AND s < :to"
	}
	for name, bound := range map[string]string{":from": q.From, ":to": q.To} {
		if bound != "" {
			input.ExpressionAttributeValues[name] = text(bound)
		}
	}
	input.KeyConditionExpression = &cond
	if q.Limit > 0 {
		input.Limit = pageLimit(q.Limit)
	}
	return input
}

func pageLimit(n int) *int32 { return aws.Int32(int32(min(n, math.MaxInt32))) }
