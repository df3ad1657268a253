package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/internal/core/table"
)

// Table is a table.Table in one DynamoDB table.
type Table struct {
	client *dynamodb.Client
	name   string
}

var _ table.Table = (*Table)(nil)

// New returns the table of this name, which must exist. The client's own retries are not used.
func New(client *dynamodb.Client, tableName string) *Table {
	return &Table{client: client, name: tableName}
}

// once turns the SDK's retries off: it would not tell whether an attempt before the last may have been carried out.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, key table.Key) (table.Item, error) {
	if err := table.CheckKey(key); err != nil {
		return table.Item{}, err
	}
	out, _, err := call(ctx, func(ctx context.Context) (*dynamodb.GetItemOutput, error) {
		return t.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.name, Key: encodeKey(key), ConsistentRead: aws.Bool(true)}, once)
	})
	if err != nil {
		return table.Item{}, fmt.Errorf("dynamo: get %s: %w", key, err)
	}
	if len(out.Item) == 0 {
		return table.Item{}, table.ErrNotFound
	}
	item, live, err := decode(out.Item, time.Now())
	if err == nil && !live {
		err = table.ErrNotFound
	}
	return item, err
}

// Put implements table.Table.
func (t *Table) Put(ctx context.Context, item table.Item, cond table.If) error {
	if err := table.Check(item); err != nil {
		return err
	}
	input := &dynamodb.PutItemInput{TableName: &t.name, Item: encode(item)}
	mark := rand.Text()
	if !cond.Unconditional() {
		input.Item[attrMark] = &types.AttributeValueMemberB{Value: []byte(mark)}
	}
	input.ConditionExpression, input.ExpressionAttributeValues = condition(cond, time.Now())
	_, lost, err := call(ctx, func(ctx context.Context) (*dynamodb.PutItemOutput, error) {
		return t.client.PutItem(ctx, input, once)
	})
	if conditionFailed(err) && lost != nil {
		err = t.settle(ctx, item.Key, mark, lost)
	}
	return outcome("put", item.Key, err)
}

// Delete implements table.Table.
func (t *Table) Delete(ctx context.Context, key table.Key, cond table.If) error {
	if err := table.CheckKey(key); err != nil {
		return err
	}
	input := &dynamodb.DeleteItemInput{TableName: &t.name, Key: encodeKey(key)}
	input.ConditionExpression, input.ExpressionAttributeValues = condition(cond, time.Now())
	_, lost, err := call(ctx, func(ctx context.Context) (*dynamodb.DeleteItemOutput, error) {
		return t.client.DeleteItem(ctx, input, once)
	})
	if _, versioned := cond.WantsVersion(); versioned && conditionFailed(err) && lost != nil {
		err = fmt.Errorf("no item of that version is left; an attempt before may have deleted it: %w", lost)
	}
	return outcome("delete", key, err)
}

// settle finds out whether the put with this mark was carried out by the attempt whose answer was lost.
func (t *Table) settle(ctx context.Context, key table.Key, mark string, lost error) error {
	out, _, err := call(ctx, func(ctx context.Context) (*dynamodb.GetItemOutput, error) {
		return t.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &t.name, Key: encodeKey(key), ConsistentRead: aws.Bool(true),
			ProjectionExpression: aws.String(attrMark),
		}, once)
	})
	if err != nil {
		return fmt.Errorf("reading what an attempt before had done: %w", err)
	}
	if stored, ok := out.Item[attrMark].(*types.AttributeValueMemberB); ok && string(stored.Value) == mark {
		return nil
	}
	return fmt.Errorf("another item is stored; an attempt before may have been written and replaced: %w", lost)
}

func conditionFailed(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}

// outcome turns the result of a write into the port's.
func outcome(op string, key table.Key, err error) error {
	switch {
	case err == nil:
		return nil
	case conditionFailed(err):
		return table.ErrConflict
	}
	return fmt.Errorf("dynamo: %s %s: %w", op, key, err)
}
