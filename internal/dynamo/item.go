package dynamo

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/internal/core/table"
)

// The names of attributes are short because they are stored, and billed, with every item. None is a reserved word.
const (
	attrPart    = "p"
	attrSort    = "s"
	attrVersion = "v"
	attrData    = "d"
	attrExpiry  = "x"
	attrMark    = "w"
)

type attributes = map[string]types.AttributeValue

func encodeKey(key table.Key) attributes {
	return attributes{attrPart: text(key.Part), attrSort: text(key.Sort)}
}

func encode(item table.Item) attributes {
	a := encodeKey(item.Key)
	a[attrVersion] = number(item.Version)
	if len(item.Data) > 0 {
		a[attrData] = &types.AttributeValueMemberB{Value: item.Data}
	}
	if x := table.ExpirySeconds(item.Expires); x != 0 {
		a[attrExpiry] = number(x)
	}
	return a
}

// decode returns an item and whether it is live, that is: not expired.
func decode(a attributes, now time.Time) (item table.Item, live bool, err error) {
	part, _ := a[attrPart].(*types.AttributeValueMemberS)
	sort, _ := a[attrSort].(*types.AttributeValueMemberS)
	if part == nil || sort == nil {
		return table.Item{}, false, fmt.Errorf("dynamo: an item without the keys %s and %s: is this a table of Sluice?", attrPart, attrSort)
	}
	item.Key = table.Key{Part: part.Value, Sort: sort.Value}
	if item.Version, err = integer(a[attrVersion]); err != nil {
		return table.Item{}, false, fmt.Errorf("dynamo: version of %s: %w", item.Key, err)
	}
	if data, ok := a[attrData].(*types.AttributeValueMemberB); ok {
		item.Data = data.Value
	}
	if a[attrExpiry] == nil {
		return item, true, nil
	}
	expiry, err := integer(a[attrExpiry])
	if err != nil {
		return table.Item{}, false, fmt.Errorf("dynamo: expiry of %s: %w", item.Key, err)
	}
	item.Expires = table.ExpiryTime(expiry)
	return item, !table.Expired(expiry, now), nil
}

// condition says a condition in DynamoDB's words. What has expired is absent, whether or not it is still stored.
func condition(cond table.If, now time.Time) (*string, attributes) {
	seconds := number(now.Unix())
	if cond.WantsAbsent() {
		return aws.String("attribute_not_exists(p) OR x <= :now"), attributes{":now": seconds}
	}
	if version, ok := cond.WantsVersion(); ok {
		return aws.String("v = :version AND (attribute_not_exists(x) OR x > :now)"), attributes{":version": number(version), ":now": seconds}
	}
	return nil, nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func integer(v types.AttributeValue) (int64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("got %T, want a number", v)
	}
	return strconv.ParseInt(n.Value, 10, 64)
}
