package dynamo_test

import (
	"testing"

	"sluice/internal/awstest"
	"sluice/internal/core/table"
	"sluice/internal/core/table/tabletest"
	"sluice/internal/dynamo"
)

func TestMain(m *testing.M) { awstest.Main(m) }

func TestContractOnMinistack(t *testing.T) { contract(t, awstest.Ministack(t)) }

func TestContractOnDynalite(t *testing.T) { contract(t, awstest.Dynalite(t)) }

func contract(t *testing.T, a awstest.AWS) {
	client := a.DynamoDB()
	for range 2 { // what is there already is left alone
		if err := dynamo.Create(t.Context(), client, "contract"); err != nil {
			t.Fatal(err)
		}
	}
	tabletest.Run(t, func(*testing.T) table.Table { return dynamo.New(client, "contract") })
}
