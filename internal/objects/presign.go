package objects

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"sluice/internal/core/blob"
)

// maxExpiry is the longest time that S3 takes a signed request for (User Guide, "Download and upload objects with presigned
// URLs").
const maxExpiry = 7 * 24 * time.Hour

// Signed is a request that whoever has it may make once or more, until it expires. It is a secret of sorts: it is given to
// the one who asked for it, and never logged.
type Signed struct {
	Method string
	URL    string
	Header http.Header // to be sent with it; Host is left out
}

// PresignPut returns a request that puts one object as it is expected, of up to the 5 GB that S3 takes at once. Another size does not
// fit the signature, and another content S3 refuses (BadDigest). It ends with the credentials that signed it, if those end before expires.
func (b *Bucket) PresignPut(ctx context.Context, name string, of blob.Expected, expires time.Duration) (Signed, error) {
	key, err := b.key(ctx, name)
	if err != nil {
		return Signed{}, err
	}
	input := &s3.PutObjectInput{Bucket: &b.bucket, Key: key}
	if of.Size > 0 {
		input.ContentLength = &of.Size // signed, so that no other length is taken
	}
	if of.SHA256 != "" {
		sum, err := hex.DecodeString(of.SHA256)
		if err != nil {
			return Signed{}, fmt.Errorf("blob %s: its digest is no hex: %w", name, err)
		}
		input.ChecksumSHA256 = aws.String(base64.StdEncoding.EncodeToString(sum))
	}
	signer, err := b.signer(expires)
	if err != nil {
		return Signed{}, fmt.Errorf("blob %s: %w", name, err)
	}
	signed, err := signer.PresignPutObject(ctx, input)
	if err != nil {
		return Signed{}, fmt.Errorf("blob %s: sign an upload: %w", name, err)
	}
	signed.SignedHeader.Del("Host")
	return Signed{signed.Method, signed.URL, signed.SignedHeader}, nil
}

// PresignGet returns a URL that gets one object, whether or not it exists. A browser saves it as filename, if there is one.
func (b *Bucket) PresignGet(ctx context.Context, name, filename string, expires time.Duration) (string, error) {
	key, err := b.key(ctx, name)
	if err != nil {
		return "", err
	}
	input := &s3.GetObjectInput{Bucket: &b.bucket, Key: key}
	if filename != "" {
		input.ResponseContentDisposition = aws.String(mime.FormatMediaType("attachment", map[string]string{"filename": filename}))
	}
	signer, err := b.signer(expires)
	if err != nil {
		return "", fmt.Errorf("blob %s: %w", name, err)
	}
	signed, err := signer.PresignGetObject(ctx, input)
	if err != nil {
		return "", fmt.Errorf("blob %s: sign a download: %w", name, err)
	}
	return signed.URL, nil
}

func (b *Bucket) signer(expires time.Duration) (*s3.PresignClient, error) {
	if expires < time.Second || expires > maxExpiry {
		return nil, fmt.Errorf("a signed request can be good for 1s to %s, not for %s", maxExpiry, expires)
	}
	return s3.NewPresignClient(b.client, s3.WithPresignExpires(expires), s3.WithPresignClientFromClientOptions(func(o *s3.Options) {
		// A checksum would have to be that of the content, which is not known here.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	})), nil
}
