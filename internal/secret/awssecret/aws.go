// Package awssecret reads secrets from SSM and Secrets Manager. It is apart from package secret so that the command line
// does not carry the SDK.
package awssecret

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"sluice/internal/core/gateway"
	"sluice/internal/secret"
)

// New resolves references by both services.
func New(cfg aws.Config) gateway.Secrets {
	return secret.Cloud{
		Parameters: Parameters{ssm.NewFromConfig(cfg)},
		Secrets:    Secrets{secretsmanager.NewFromConfig(cfg)},
	}
}

// Parameters is the SSM Parameter Store.
type Parameters struct{ Client *ssm.Client }

// Read implements secret.Store; parameters of type SecureString are decrypted.
func (p Parameters) Read(ctx context.Context, name string) (string, error) {
	out, err := p.Client.GetParameter(ctx, &ssm.GetParameterInput{Name: &name, WithDecryption: aws.Bool(true)})
	if err != nil {
		return "", judge(err)
	}
	if out.Parameter == nil {
		return "", secret.ErrNotFound
	}
	return aws.ToString(out.Parameter.Value), nil
}

// Secrets is Secrets Manager.
type Secrets struct{ Client *secretsmanager.Client }

// Read implements secret.Store; a binary secret is taken as text.
func (s Secrets) Read(ctx context.Context, name string) (string, error) {
	out, err := s.Client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	if err != nil {
		return "", judge(err)
	}
	if out.SecretString == nil {
		return string(out.SecretBinary), nil
	}
	return *out.SecretString, nil
}

// judge tells the answers that will stay the same from all others.
func judge(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode() {
	case "ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException":
		return secret.ErrNotFound
	case "AccessDeniedException", "AccessDenied", "DecryptionFailure", "InvalidKeyId":
		return secret.ErrDenied
	case "ValidationException", "InvalidParameterException", "InvalidRequestException":
		return secret.ErrNotFound // not a name that a secret can have, or one that is being deleted
	}
	// What the service says may quote the request, which holds no more than the name.
	if _, throttled := retry.DefaultThrottleErrorCodes[api.ErrorCode()]; throttled {
		return err
	}
	return fmt.Errorf("%w: %w", secret.ErrFailed, err)
}
