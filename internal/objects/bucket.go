package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"sluice/internal/core/blob"
)

// Bucket is a blob.Store in an S3 bucket, or below a prefix of one. Puts, gets and deletes are atomic there, and what was
// written is seen at once (S3 User Guide, "Amazon S3 data consistency model"). Whoever uses it needs s3:ListBucket besides the
// rights on objects: without it S3 answers a missing object with "access denied".
type Bucket struct {
	client *s3.Client
	bucket string
	prefix string
}

var _ blob.Store = (*Bucket)(nil)

// NewBucket returns a store in a bucket that exists. The prefix is "" or what all its keys start with, at most 100 bytes:
// a path, with or without a slash at its end.
func NewBucket(client *s3.Client, bucket, prefix string) *Bucket {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return &Bucket{client: client, bucket: bucket, prefix: prefix}
}

// Put implements blob.Store. It holds one part (8 MB) of the object in memory.
func (b *Bucket) Put(ctx context.Context, name string, data io.Reader) error {
	key, err := b.key(ctx, name)
	if err != nil {
		return err
	}
	if err := b.put(ctx, key, blob.Reader(ctx, data)); err != nil {
		return fmt.Errorf("blob %s: %w", name, err)
	}
	return nil
}

func (b *Bucket) put(ctx context.Context, key *string, data io.Reader) error {
	var first bytes.Buffer
	if err := readPart(&first, data); err != nil {
		return err
	}
	if first.Len() == partSize {
		return b.putParts(ctx, key, &first, data)
	}
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.bucket, Key: key, Body: bytes.NewReader(first.Bytes())})
	return err
}

// Get implements blob.Store.
func (b *Bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	key, err := b.key(ctx, name)
	if err != nil {
		return nil, err
	}
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.bucket, Key: key})
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", name, notThere(err))
	}
	return out.Body, nil
}

// Delete implements blob.Store.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	key, err := b.key(ctx, name)
	if err != nil {
		return err
	}
	_, err = b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.bucket, Key: key})
	if err = notThere(err); err != nil && !errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("blob %s: %w", name, err)
	}
	return nil
}

func (b *Bucket) key(ctx context.Context, name string) (*string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := blob.CheckName(name); err != nil {
		return nil, err
	}
	return aws.String(b.prefix + name), nil
}

// notThere turns what S3 says of an object that does not exist into blob.ErrNotFound. A missing bucket is another matter.
func notThere(err error) error {
	var api interface{ ErrorCode() string }
	if errors.As(err, &api) && api.ErrorCode() == "NoSuchBucket" {
		return err
	}
	var resp *awshttp.ResponseError
	if errors.As(err, &resp) && resp.HTTPStatusCode() == http.StatusNotFound {
		return blob.ErrNotFound
	}
	return err
}
