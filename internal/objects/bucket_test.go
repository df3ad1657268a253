package objects_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"sluice/internal/awstest"
	"sluice/internal/core/blob"
	"sluice/internal/core/blob/blobtest"
	"sluice/internal/objects"
)

func TestMain(m *testing.M) { awstest.Main(m) }

// newBucket makes a bucket of this name on the emulator.
func newBucket(t *testing.T, name string) *s3.Client {
	client := awstest.Ministack(t).S3()
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	return client
}

func TestBucketContract(t *testing.T) {
	client := newBucket(t, "contract")
	for name, prefix := range map[string]string{"whole bucket": "", "prefix": "blobs/v1"} {
		t.Run(name, func(t *testing.T) {
			blobtest.Run(t, func(*testing.T) blob.Store { return objects.NewBucket(client, "contract", prefix) })
		})
	}
}

func TestBucketKeepsToItsPrefix(t *testing.T) {
	client := newBucket(t, "prefixes")
	if err := objects.NewBucket(client, "prefixes", "in").Put(t.Context(), "a/b", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	out, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("prefixes")})
	if err != nil || len(out.Contents) != 1 || *out.Contents[0].Key != "in/a/b" {
		t.Errorf("got %v, %v, want in/a/b", out.Contents, err)
	}
}

func TestObjectsAroundThePartSize(t *testing.T) {
	store := objects.NewBucket(newBucket(t, "parts"), "parts", "")
	const part = 8 << 20
	content := bytes.Repeat([]byte("0123456789abcde"), (2*part+15)/15) // its period does not divide a part
	for _, size := range []int{part - 1, part, part + 1, 2 * part, 2*part + 1} {
		if err := store.Put(t.Context(), "a", bytes.NewReader(content[:size])); err != nil {
			t.Fatalf("put %d bytes: %v", size, err)
		}
		r, err := store.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, content[:size]) {
			t.Errorf("%d bytes: got %d others, %v", size, len(got), err)
		}
	}
}

func TestFailedUploadLeavesNoParts(t *testing.T) {
	client := newBucket(t, "failed")
	store := objects.NewBucket(client, "failed", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		last io.Reader
		want error
	}{
		"reader fails":   {iotest.ErrReader(broken), broken},
		"caller is gone": {readerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil }), context.Canceled},
	} {
		data := io.MultiReader(bytes.NewReader(make([]byte, 9<<20)), tt.last)
		if err := store.Put(ctx, "a", data); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
	}
	out, err := client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: aws.String("failed")})
	if err != nil || len(out.Uploads) != 0 {
		t.Errorf("uploads left: %v, %v", out.Uploads, err)
	}
	if _, err := store.Get(t.Context(), "a"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestMissingBucketIsNoMissingObject(t *testing.T) {
	store := objects.NewBucket(awstest.Ministack(t).S3(), "no-such-bucket", "")
	_, err := store.Get(t.Context(), "a")
	if err == nil || errors.Is(err, blob.ErrNotFound) || !strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("get: %v", err)
	}
	if err := store.Delete(t.Context(), "a"); err == nil {
		t.Error("delete succeeded")
	}
}

func TestSignedRequestsUploadAndDownload(t *testing.T) {
	store := objects.NewBucket(newBucket(t, "signed"), "signed", "uploads")
	signed, err := store.PresignPut(t.Context(), "a.csv", blob.Expected{Size: 5, SHA256: digestOf("a,b\n1")}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), signed.Method, signed.URL, strings.NewReader("a,b\n1"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = signed.Header
	do(t, req)
	url, err := store.PresignGet(t.Context(), "a.csv", "r\u00e9sultat 1.csv", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil); err != nil {
		t.Fatal(err)
	}
	body, header := do(t, req)
	if want := "attachment; filename*=utf-8''r%C3%A9sultat%201.csv"; body != "a,b\n1" || header.Get("Content-Disposition") != want {
		t.Errorf("got %q as %q, want %q", body, header.Get("Content-Disposition"), want)
	}
}

func do(t *testing.T, req *http.Request) (string, http.Header) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %s %v", req.Method, req.URL, resp.Status, body, err)
	}
	return string(body), resp.Header
}

func TestSigningFixesSizeAndTime(t *testing.T) {
	client := awstest.AWS{URL: "http://127.0.0.1:1"}.S3() // signing asks nobody
	store := objects.NewBucket(client, "b", "p")
	sized, err := store.PresignPut(t.Context(), "a", blob.Expected{Size: 5}, time.Hour)
	if err != nil || !strings.Contains(sized.URL, "X-Amz-SignedHeaders=content-length%3Bhost") || !strings.Contains(sized.URL, "X-Amz-Expires=3600") {
		t.Errorf("got %+v, %v", sized, err)
	}
	anySize, err := store.PresignPut(t.Context(), "a", blob.Expected{}, time.Hour)
	if err != nil || strings.Contains(anySize.URL, "content-length") || strings.Contains(strings.ToLower(anySize.URL), "checksum") {
		t.Errorf("got %+v, %v", anySize, err)
	}
	if _, err := store.PresignPut(t.Context(), "../a", blob.Expected{}, time.Hour); !errors.Is(err, blob.ErrInvalid) {
		t.Errorf("a name that leaves the prefix: %v", err)
	}
	for _, expires := range []time.Duration{0, -time.Hour, 8 * 24 * time.Hour} {
		if _, err := store.PresignGet(t.Context(), "a", "", expires); err == nil {
			t.Errorf("signed for %s", expires)
		}
	}
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// A file whose digest was announced is signed with it as a header, which whoever sends it must send as well; in the address S3
// would not hold the content against it.
func TestSigningFixesTheContent(t *testing.T) {
	client := awstest.AWS{URL: "http://127.0.0.1:1"}.S3() // signing asks nobody
	store := objects.NewBucket(client, "b", "p")
	signed, err := store.PresignPut(t.Context(), "a", blob.Expected{SHA256: digestOf("abc")}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	// FIPS 180-2, appendix B.1, in base64.
	if got := signed.Header.Get("X-Amz-Checksum-Sha256"); got != "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=" {
		t.Errorf("the header is %q, in %v", got, signed)
	}
	u, err := url.Parse(signed.URL)
	if err != nil || !slices.Contains(strings.Split(u.Query().Get("X-Amz-SignedHeaders"), ";"), "x-amz-checksum-sha256") || u.Query().Has("X-Amz-Checksum-Sha256") {
		t.Errorf("the header is not signed: %s", signed.URL)
	}
	if _, err := store.PresignPut(t.Context(), "a", blob.Expected{SHA256: "zz"}, time.Hour); err == nil {
		t.Error("a digest that is none was signed")
	}
}
