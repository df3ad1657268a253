// Command toolexec is the Lambda function that executes calls: the only one that may read the secrets of providers.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"sluice/functions/internal/toolexec"
	"sluice/functions/internal/wire"
	"sluice/internal/core/gateway"
	"sluice/internal/core/pacer"
	"sluice/internal/provider"
	"sluice/internal/secret/awssecret"
)

func main() {
	f := wire.Begin("toolexec")
	paced := pacer.New(f.Store.Table, f.Owner)
	paced.Bulk = true
	h := &toolexec.Handler{
		Catalogues: &toolexec.Stored{Store: f.Store},
		Pacer:      paced,
		Sender:     provider.New(provider.Options{OnlyPublic: !f.AllowPrivate}),
		Secrets:    awssecret.New(f.AWS),
		Blobs:      f.Store.Blobs,
		Log:        f.Log,
		Usage:      f.Usage,
		Bodies:     gateway.NewBodies(f.BodyMemory),
	}
	lambda.Start(h.Handle)
}
