package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"sluice/internal/core/blob"
)

const (
	// partSize: a smaller object is put at once. S3 takes parts of 5 MB and more, and 10,000 of them (User Guide,
	// "Amazon S3 multipart upload limits"), so that 80 GB fit.
	partSize = 8 << 20
	maxParts = 10_000

	// abortTimeout bounds the removal of what a failed upload left, which happens also when its caller has given up. What it
	// misses is invisible, but billed until a lifecycle rule of the bucket removes it.
	abortTimeout = 10 * time.Second
)

// readPart fills part with the next bytes of data, at most partSize; fewer mean that data has ended.
func readPart(part *bytes.Buffer, data io.Reader) error {
	part.Reset()
	_, err := part.ReadFrom(io.LimitReader(data, partSize))
	return err
}

// putParts puts an object of one part or more. It appears when its last request succeeds.
func (b *Bucket) putParts(ctx context.Context, key *string, first *bytes.Buffer, rest io.Reader) (err error) {
	upload, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &b.bucket, Key: key})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.abort(ctx, key, upload.UploadId))
		}
	}()
	parts, err := b.sendParts(ctx, key, upload.UploadId, first, rest)
	if err != nil {
		return err
	}
	_, err = b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &b.bucket, Key: key, UploadId: upload.UploadId,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	return err
}

func (b *Bucket) sendParts(ctx context.Context, key, upload *string, part *bytes.Buffer, rest io.Reader) ([]types.CompletedPart, error) {
	var parts []types.CompletedPart
	for part.Len() > 0 {
		if len(parts) == maxParts {
			return nil, fmt.Errorf("an object of more than %d bytes does not fit", int64(maxParts)*partSize)
		}
		number := aws.Int32(int32(len(parts) + 1))
		out, err := b.client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &b.bucket, Key: key, UploadId: upload, PartNumber: number, Body: bytes.NewReader(part.Bytes()),
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, types.CompletedPart{PartNumber: number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32})
		if err := readPart(part, rest); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func (b *Bucket) abort(ctx context.Context, key, upload *string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	_, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b.bucket, Key: key, UploadId: upload})
	if err = notThere(err); err != nil && !errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("removing the parts of a failed upload: %w", err)
	}
	return nil
}
