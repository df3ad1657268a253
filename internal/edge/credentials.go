package edge

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// environment gives the credentials of the function's role, which Lambda keeps in the environment for the life of the
// process.
type environment func(string) string

// Retrieve implements aws.CredentialsProvider.
func (getenv environment) Retrieve(context.Context) (aws.Credentials, error) {
	c := aws.Credentials{
		AccessKeyID: getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: getenv("AWS_SESSION_TOKEN"), Source: "environment",
	}
	if c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return c, errors.New("the environment has no AWS credentials; a function gets them from its role")
	}
	return c, nil
}
