package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/core/table"
)

func stored(sort string) map[string]any {
	return map[string]any{"p": map[string]any{"S": "p"}, "s": map[string]any{"S": sort}, "v": map[string]any{"N": "1"}}
}

func keyed(sort string) table.Item {
	return table.Item{Key: table.Key{Part: "p", Sort: sort}, Version: 1}
}

func answer(v any) reply {
	body, err := json.Marshal(v)
	if err != nil {
		return reply{err: err}
	}
	return reply{body: string(body)}
}

// batch returns what a request asks of the one table.
func (r request) batch() []any {
	switch all := r.body["RequestItems"].(map[string]any)["scripted"].(type) {
	case map[string]any:
		return all["Keys"].([]any)
	case []any:
		return all
	}
	return nil
}

func TestUnprocessedKeysAreAskedForAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &script{answer: func(n int, r request) reply {
			asked := r.batch()
			if n == 2 { // nothing at all
				return answer(map[string]any{"UnprocessedKeys": map[string]any{"scripted": map[string]any{"Keys": asked}}})
			}
			sort := asked[0].(map[string]any)["s"].(map[string]any)["S"].(string)
			out := map[string]any{"Responses": map[string]any{"scripted": []any{stored(sort)}}}
			if len(asked) > 1 {
				out["UnprocessedKeys"] = map[string]any{"scripted": map[string]any{"Keys": asked[1:]}}
			}
			return answer(out)
		}}
		got, err := s.table().GetMany(t.Context(), []table.Key{keyed("a").Key, keyed("b").Key, keyed("c").Key})
		if err != nil || len(got) != 3 || got[0].Sort+got[1].Sort+got[2].Sort != "abc" || len(s.requests) != 4 {
			t.Errorf("got %v, %v behind %s", got, err, s.ops())
		}
		for i, r := range s.requests[1:] {
			if pause := r.at.Sub(s.requests[i].at); pause < 12*time.Millisecond || pause > 50*time.Millisecond {
				t.Errorf("pause %d was %s", i, pause)
			}
		}
		for _, r := range s.requests {
			if all := r.body["RequestItems"].(map[string]any)["scripted"].(map[string]any); all["ConsistentRead"] != true {
				t.Error("an inconsistent read")
			}
		}
	})
}

func TestUnprocessedItemsAreWrittenAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		written := map[string]int{}
		s := &script{answer: func(_ int, r request) reply {
			asked := r.batch()
			done := min(2, len(asked))
			for _, write := range asked[:done] {
				put := write.(map[string]any)["PutRequest"].(map[string]any)["Item"].(map[string]any)
				written[put["s"].(map[string]any)["S"].(string)]++
			}
			out := map[string]any{}
			if done < len(asked) {
				out["UnprocessedItems"] = map[string]any{"scripted": asked[done:]}
			}
			return answer(out)
		}}
		var items []table.Item
		for i := range 25 {
			items = append(items, keyed(fmt.Sprint(i)))
		}
		if err := s.table().PutMany(t.Context(), items); err != nil || len(written) != 25 || len(s.requests) != 13 {
			t.Errorf("wrote %v in %d requests: %v", written, len(s.requests), err)
		}
	})
}

func TestNothingProcessedForAMinuteIsAnError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &script{answer: func(_ int, r request) reply {
			return answer(map[string]any{"UnprocessedItems": map[string]any{"scripted": r.batch()}})
		}}
		start := time.Now()
		err := s.table().PutMany(t.Context(), []table.Item{keyed("a"), keyed("b")})
		if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "2 of a batch") || took > 62*time.Second {
			t.Errorf("got %v after %s", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.table().PutMany(ctx, []table.Item{keyed("a")}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's end", err)
		}
	})
}

func TestFailedBatchKeepsTheOthersFromStarting(t *testing.T) {
	s := &script{answer: func(int, request) reply { return exception(400, "AccessDeniedException") }}
	var items []table.Item
	for i := range 300 { // 12 batches, of which 4 are under way at once
		items = append(items, keyed(fmt.Sprint(i)))
	}
	if err := s.table().PutMany(t.Context(), items); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("got %v, want the first error", err)
	}
	if len(s.requests) > 4 {
		t.Errorf("%d batches were sent", len(s.requests))
	}
}

// pages answers queries with pages of these sort keys; the last one has no successor.
func pages(all ...string) *script {
	s := &script{}
	s.answer = func(n int, _ request) reply {
		var items []any
		for _, sort := range strings.Fields(all[n-1]) {
			items = append(items, stored(sort))
		}
		out := map[string]any{"Items": items}
		if n < len(all) {
			out["LastEvaluatedKey"] = map[string]any{"p": map[string]any{"S": "p"}, "s": map[string]any{"S": fmt.Sprint(n)}}
		}
		return answer(out)
	}
	return s
}

func sorts(t *testing.T, s *script, q table.Query, enough int) string {
	t.Helper()
	q.Part = "p"
	got := ""
	for item, err := range s.table().Query(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		if got += item.Sort; len(got) == enough {
			break
		}
	}
	return got
}

func TestQueryFollowsPagesEvenEmptyOnes(t *testing.T) {
	s := pages("a b", "", "c")
	if got := sorts(t, s, table.Query{}, 0); got != "abc" || len(s.requests) != 3 {
		t.Errorf("got %q in %d requests", got, len(s.requests))
	}
	start, _ := s.requests[2].body["ExclusiveStartKey"].(map[string]any)
	if s.requests[0].body["ExclusiveStartKey"] != nil || start["s"].(map[string]any)["S"] != "2" {
		t.Errorf("the third page starts at %v", start)
	}
}

func TestQueryReadsNoPageThatNobodyAskedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		limit, enough int
	}{"limit": {2, 0}, "broken off": {0, 2}} {
		s := pages("a b", "c")
		if got := sorts(t, s, table.Query{Limit: tt.limit}, tt.enough); got != "ab" || len(s.requests) != 1 {
			t.Errorf("%s: got %q in %d requests", name, got, len(s.requests))
		}
	}
}

func TestQueryBoundsAndHiddenItems(t *testing.T) {
	s := pages("d", "c", "b", "a") // reverse: d is the excluded end
	if got := sorts(t, s, table.Query{From: "a", To: "d", Reverse: true, Limit: 1}, 0); got != "c" || len(s.requests) != 2 {
		t.Errorf("got %q in %d requests", got, len(s.requests))
	}
	for i, want := range []float64{1, 2} { // more at a time behind items that do not count
		if r := s.requests[i].body; r["Limit"] != want || r["ScanIndexForward"] != false || r["ConsistentRead"] != true {
			t.Errorf("request %d: %v", i, r)
		}
	}
	if s := pages(); sorts(t, s, table.Query{From: "b", To: "a"}, 0) != "" || len(s.requests) != 0 {
		t.Error("a query of nothing was sent")
	}
}

func TestForeignItemsAreErrors(t *testing.T) {
	for name, item := range map[string]map[string]any{
		"no version": {"p": map[string]any{"S": "p"}, "s": map[string]any{"S": "s"}},
		"no keys":    {"id": map[string]any{"S": "p"}},
		"bad expiry": {"p": map[string]any{"S": "p"}, "s": map[string]any{"S": "s"}, "v": map[string]any{"N": "1"}, "x": map[string]any{"S": "never"}},
	} {
		tab, _ := scripted(t, answer(map[string]any{"Item": item}))
		if got, err := tab.Get(t.Context(), key); err == nil || errors.Is(err, table.ErrNotFound) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}
