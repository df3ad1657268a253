package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/store"
	"sluice/internal/memory"
	"sluice/internal/sqlite"
)

// generated makes a CSV or JSONL of n rows without keeping it.
type generated struct {
	n, at int
	line  func(dst []byte, i int) []byte
	head  string
	buf   []byte
}

func (g *generated) Read(p []byte) (int, error) {
	if g.at == 0 && g.head != "" {
		g.buf = append(g.buf, g.head...)
		g.head = ""
	}
	for len(g.buf) < len(p) && g.at < g.n {
		g.buf = g.line(g.buf, g.at)
		g.at++
	}
	if len(g.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, g.buf)
	g.buf = append(g.buf[:0], g.buf[n:]...)
	return n, nil
}

func csvRows(n int) io.Reader {
	return &generated{n: n, head: "id,email,company\n", line: func(dst []byte, i int) []byte {
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, ",user"...)
		dst = strconv.AppendInt(dst, int64(i*7919), 10)
		return append(dst, "@example.com,Acme Ltd\n"...)
	}}
}

func jsonRows(n int) io.Reader {
	return &generated{n: n, line: func(dst []byte, i int) []byte {
		return fmt.Appendf(dst, "{\"id\":%d,\"email\":\"user%d@example.com\",\"company\":\"Acme Ltd\"}\n", i, i*7919)
	}}
}

func drain(b *testing.B, src Source) {
	for {
		if _, err := src.Next(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}

func perSecond(b *testing.B, what string, n int) {
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), what+"/s")
}

func BenchmarkCSV(b *testing.B) {
	const rows = 200_000
	text, _ := io.ReadAll(csvRows(rows))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		src, err := Open("a.csv", readerOf(text), Options{})
		if err != nil {
			b.Fatal(err)
		}
		drain(b, src)
	}
	perSecond(b, "rows", rows)
}

func BenchmarkCSVQuoted(b *testing.B) {
	const rows = 100_000
	text := []byte("id,email,note\n" + strings.Repeat("12345,\"user@example.com\",\"says \"\"hi\"\",\nor so\"\n", rows))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		src, err := Open("a.csv", readerOf(text), Options{})
		if err != nil {
			b.Fatal(err)
		}
		drain(b, src)
	}
	perSecond(b, "rows", rows)
}

func BenchmarkJSONL(b *testing.B) {
	const rows = 100_000
	text, _ := io.ReadAll(jsonRows(rows))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		src, err := Open("a.jsonl", readerOf(text), Options{})
		if err != nil {
			b.Fatal(err)
		}
		drain(b, src)
	}
	perSecond(b, "rows", rows)
}

func BenchmarkDecodePage(b *testing.B) {
	for _, kind := range []string{"text", "mixed"} {
		b.Run(kind, func(b *testing.B) {
			d := draft{columns: []string{"id", "email", "company", "note"}}
			for i := range MaxPageRows {
				row := []any{strconv.Itoa(i), fmt.Sprintf("user%d@example.com", i), "Acme Ltd", "says hello"}
				if kind == "mixed" {
					row = []any{int64(i), fmt.Sprintf("user%d@exämple.com", i), 3.25, []any{"a \"b\"", nil}}
				}
				line, err := appendRow(nil, d.columns, row)
				if err != nil {
					b.Fatal(err)
				}
				d.rows = append(d.rows, line...)
				d.ends, d.index = append(d.ends, len(d.rows)), append(d.index, int64(i))
			}
			plain, err := d.payload(nil, 0, MaxPageRows)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decodePage(plain, MaxPageRows); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, "cells", 4*MaxPageRows)
		})
	}
}

// BenchmarkSeal reports the highest heap besides the speed: it must not grow with the rows (M4).
func BenchmarkSeal(b *testing.B) {
	stores := map[string]func() *store.Store{
		"forgetful": func() *store.Store { return &store.Store{Table: forgetful{memory.New()}} },
		"sqlite": func() *store.Store {
			t, err := sqlite.Open(context.Background(), filepath.Join(b.TempDir(), "s.db"))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = t.Close() })
			return &store.Store{Table: t}
		},
	}
	for name, open := range stores {
		for _, rows := range []int{100_000, 1_000_000} {
			for _, id := range []Identity{Position(), ByColumns("email")} {
				b.Run(fmt.Sprintf("%s/rows=%d/keys=%d", name, rows, len(id.Columns)), func(b *testing.B) {
					peak := watchHeap(b)
					for b.Loop() {
						src, err := Open("a.csv", csvRows(rows), Options{})
						if err != nil {
							b.Fatal(err)
						}
						if _, err := Seal(b.Context(), open(), "r", src, id, SealOptions{}); err != nil {
							b.Fatal(err)
						}
					}
					perSecond(b, "rows", rows)
					b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
				})
			}
		}
	}
}

// watchHeap samples the heap until the function that it returns is called.
func watchHeap(b *testing.B) func() uint64 {
	stop, out := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			metrics.Read(sample)
			peak = max(peak, sample[0].Value.Uint64())
			select {
			case <-stop:
				tick.Stop()
				out <- peak
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { close(stop); return min(<-out, math.MaxInt64) }
}
