// Package blobtest is the contract of the blob port: the suite that every store must pass. It assumes nothing beyond the
// port, so that it runs unchanged over memory, a folder and a service on the network.
package blobtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"sluice/internal/core/blob"
)

// Run checks a store. open returns one that may hold objects of others: every test keeps to names of its own.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	for name, test := range map[string]func(*testing.T, *fixture){
		"PutGetDelete":          testPutGetDelete,
		"PutReplaces":           testReplace,
		"EmptyAndLarge":         testSizes,
		"FailedPutLeavesNoPart": testFailedPut,
		"Names":                 testNames,
		"FoldersAreNoObjects":   testFolders,
		"EndedContext":          testEndedContext,
		"WritersAndReaders":     testConcurrent,
	} {
		t.Run(name, func(t *testing.T) { test(t, &fixture{open(t), "test/" + rand.Text(), t}) })
	}
}

type fixture struct {
	blob.Store
	prefix string
	t      *testing.T
}

func (f *fixture) name(name string) string { return f.prefix + "/" + name }

func (f *fixture) put(name, content string) {
	f.t.Helper()
	if err := f.Put(f.t.Context(), f.name(name), strings.NewReader(content)); err != nil {
		f.t.Fatalf("put %s: %v", name, err)
	}
}

func (f *fixture) stored(name, want string) {
	f.t.Helper()
	r, err := f.Get(f.t.Context(), f.name(name))
	if err != nil {
		f.t.Fatalf("get %s: %v", name, err)
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		f.t.Fatalf("read %s: %v", name, err)
	}
	if string(got) != want {
		f.t.Fatalf("%s holds %d bytes %.20q, want %d bytes %.20q", name, len(got), got, len(want), want)
	}
}

func (f *fixture) absent(name string) {
	f.t.Helper()
	if _, err := f.Get(f.t.Context(), f.name(name)); !errors.Is(err, blob.ErrNotFound) {
		f.t.Fatalf("get %s: got %v, want ErrNotFound", name, err)
	}
}

func (f *fixture) delete(name string) {
	f.t.Helper()
	if err := f.Delete(f.t.Context(), f.name(name)); err != nil {
		f.t.Fatalf("delete %s: %v", name, err)
	}
}

func testPutGetDelete(t *testing.T, f *fixture) {
	f.absent("a/b/c.json")
	f.delete("a/b/c.json") // what is not there is gone
	f.put("a/b/c.json", "one")
	f.put("a/b/d.json", "two")
	f.stored("a/b/c.json", "one")
	f.delete("a/b/c.json")
	f.absent("a/b/c.json")
	f.stored("a/b/d.json", "two")
}

func testReplace(t *testing.T, f *fixture) {
	f.put("a", "a longer first content")
	r, err := f.Get(t.Context(), f.name("a"))
	if err != nil {
		t.Fatal(err)
	}
	f.put("a", "second")
	f.stored("a", "second")
	got, err := io.ReadAll(r) // a reader keeps to what it opened
	if err := errors.Join(err, r.Close()); err != nil || string(got) != "a longer first content" {
		t.Errorf("an open reader got %q, %v", got, err)
	}
}

func testSizes(_ *testing.T, f *fixture) {
	f.put("empty", "")
	f.stored("empty", "")
	large := strings.Repeat("0123456789abcdef", 8<<20/16)
	f.put("large", large)
	f.stored("large", large)
	f.put("bytes", "\x00\xff\r\n\x1a")
	f.stored("bytes", "\x00\xff\r\n\x1a")
}

func testFailedPut(t *testing.T, f *fixture) {
	f.put("old", "old")
	broken := errors.New("broken")
	for _, name := range []string{"old", "new"} {
		data := io.MultiReader(strings.NewReader(strings.Repeat("x", 100_000)), iotest.ErrReader(broken))
		if err := f.Put(t.Context(), f.name(name), data); !errors.Is(err, broken) {
			t.Errorf("put %s: got %v, want the reader's error", name, err)
		}
	}
	f.stored("old", "old")
	f.absent("new")
}

func testNames(t *testing.T, f *fixture) {
	f.put("A-Z.a_z-0.9", "x")
	f.stored("A-Z.a_z-0.9", "x")
	f.put(strings.Repeat("s", blob.MaxSegment), "x")
	f.stored(strings.Repeat("s", blob.MaxSegment), "x")
	for _, name := range []string{
		"", "/", "/etc/passwd", "..", ".", "../x", "a/../b", "a/./b", "a//b", "a/", ".hidden", "a/.hidden", "a b", "a\\b", "a\x00b", "\u00e4",
		"C:x", "a\n", strings.Repeat("s", blob.MaxSegment+1), strings.Repeat("abcdefghi/", blob.MaxName/10) + "x",
	} {
		_, getErr := f.Get(t.Context(), name)
		for op, err := range map[string]error{
			"put":    f.Put(t.Context(), name, strings.NewReader("x")),
			"get":    getErr,
			"delete": f.Delete(t.Context(), name),
		} {
			if !errors.Is(err, blob.ErrInvalid) {
				t.Errorf("%s %q: got %v, want ErrInvalid", op, name, err)
			}
		}
	}
}

func testFolders(t *testing.T, f *fixture) {
	f.put("a/b/c", "x")
	f.absent("a/b")
	f.absent("a/b/c/d")
	f.delete("a/b")
	f.delete("a/b/c/d")
	f.stored("a/b/c", "x")
	f.delete("a/b/c")
	f.delete("a/b")
	f.put("a/b/c", "y")
	f.stored("a/b/c", "y")
}

func testEndedContext(t *testing.T, f *fixture) {
	f.put("a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, getErr := f.Get(ctx, f.name("a"))
	for op, err := range map[string]error{
		"put":    f.Put(ctx, f.name("a"), strings.NewReader("y")),
		"get":    getErr,
		"delete": f.Delete(ctx, f.name("a")),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", op, err)
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	data := io.MultiReader(strings.NewReader("start"), readerFunc(func(p []byte) (int, error) {
		cancel()
		return copy(p, "middle"), nil
	}))
	if err := f.Put(ctx, f.name("a"), data); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while reading: got %v", err)
	}
	f.stored("a", "x")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// testConcurrent has writers replace one object while readers look: each sees some writer's whole object.
func testConcurrent(t *testing.T, f *fixture) {
	contents := make([][]byte, 4)
	for i := range contents {
		contents[i] = bytes.Repeat([]byte{byte('a' + i)}, 50_000+i)
	}
	f.put("shared", string(contents[0]))
	var wg sync.WaitGroup
	for _, content := range contents {
		wg.Go(func() {
			for range 5 {
				if err := f.Put(t.Context(), f.name("shared"), bytes.NewReader(content)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				r, err := f.Get(t.Context(), f.name("shared"))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(r)
				if err := errors.Join(err, r.Close()); err != nil {
					t.Error(err)
					return
				}
				if len(got) < 50_000 || !bytes.Equal(got, contents[got[0]-'a']) {
					t.Errorf("read a mixture of %d bytes", len(got))
				}
			}
		})
	}
	wg.Wait()
}
