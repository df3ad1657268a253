package cloud

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/e2e/demo"
	"sluice/internal/providersim"
)

// last are the statuses of a provider's latest answers, by request.
func (p *providers) last(provider string) map[string]int {
	statuses := map[string]int{}
	for _, r := range p.requests() {
		if r.Provider == provider {
			statuses[r.Request] = r.Status
		}
	}
	return statuses
}

// failing are the addresses that the provider has given no answer for, in the order of the rows.
func (p *providers) failing(provider string, rows []map[string]any) (emails []string) {
	statuses := p.last(provider)
	for _, row := range rows {
		if email := row["email"].(string); statuses[verifies(provider, email)] != http.StatusOK {
			emails = append(emails, email)
		}
	}
	return emails
}

// failed are the addresses of the rows that failed, as the API lists them.
func (s *stack) failed(t *testing.T, run string) (emails []string) {
	t.Helper()
	var page struct {
		Rows []struct {
			Input map[string]string
			Error struct{ Column, Code string }
		}
		Next string
	}
	if status, said := s.call(t, http.MethodGet, "/runs/"+run+"/rows?status=failed&limit=1000", nil, nil, &page); status != http.StatusOK || page.Next != "" {
		t.Fatalf("status %d: %s", status, said)
	}
	for _, row := range page.Rows {
		if row.Error.Column != "ok" || row.Error.Code == "" {
			t.Errorf("%s does not say why it failed: %+v", row.Input["email"], row.Error)
		}
		emails = append(emails, row.Input["email"])
	}
	return emails
}

// A third of the rows fails because the provider is not available for a moment, and one for good. The failed rows are run
// again, by the API and then by the command line. No other row is called again.
func TestX4RetryOfFailedRows(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run, provider := named("retry"), named("retry")
	p := simulate(t, providersim.Provider{Name: provider, Kind: "verify", Unavailable: 300})
	rows := people("retry", 40)
	o := p.verifying(run, provider, 100, time.Second, rows)
	o.Map = strings.ReplaceAll(o.Map, ", onError: {value: refused}", "")
	o.Tools = strings.ReplaceAll(o.Tools, "fence: Idempotency-Key", "fence: Idempotency-Key, retry: {attempts: 1}")
	s.start(t, o)
	v := s.ended(t, run, "completed", soon)
	want := map[string]int{}
	for _, row := range rows {
		want[verifies(provider, row["email"].(string))] = 1
	}
	agree := func(again []string) {
		t.Helper()
		for _, email := range again {
			want[verifies(provider, email)]++
		}
		if got := p.times(provider); !maps.Equal(got, want) {
			t.Errorf("calls: %v, want %v", got, want)
		}
		failing := p.failing(provider, rows)
		if got := s.failed(t, run); !slices.Equal(got, failing) {
			t.Errorf("failed are %v, the provider did not answer for %v", got, failing)
		}
		if v = s.view(t, run); v.Failed != len(failing) || v.Completed != len(rows)-len(failing) {
			t.Errorf("%d completed and %d failed; %d were not answered", v.Completed, v.Failed, len(failing))
		}
	}
	agree(nil)

	first, ended := p.failing(provider, rows), v.FinishedAt
	if status, said := s.call(t, http.MethodPost, "/runs/"+run+"/retry", nil, nil, nil); status != http.StatusAccepted {
		t.Fatalf("status %d: %s", status, said)
	}
	eventually(t, soon, "it has ended again", func() bool { v = s.view(t, run); return v.Status == "completed" && v.FinishedAt.After(ended) })
	agree(first)

	second, dir := p.failing(provider, rows), t.TempDir()
	if got := s.cli(t, dir, "retry", run, "--out", "out.csv"); got.code != 3 { // for some there is no answer
		t.Errorf("exit code %d, it said\n%s", got.code, got.err)
	}
	agree(second)
	if len(first) < 5 || len(second) == 0 || len(second) >= len(first) {
		t.Errorf("%d rows failed at first, then %d", len(first), len(second))
	}
	p.retried(provider, read(t, dir, "out.csv"), rows)
}

// retried checks the table of such a run against what the provider says when it is asked directly.
func (p *providers) retried(provider, table string, rows []map[string]any) {
	p.t.Helper()
	got := demo.Records(p.t, table)
	if len(got) != len(rows)+1 || strings.Join(got[0], ",") != "email,ok,_status,_error" {
		p.t.Fatalf("%d lines, want %d and a header; they begin %v", len(got), len(rows), got[0])
	}
	for i, row := range rows {
		email, record := row["email"].(string), got[i+1]
		want := []string{email, p.ask(provider, email), "completed", ""}
		if want[1] == "refused" {
			want = []string{email, "", "failed", record[3]}
		}
		if !slices.Equal(record, want) || (record[3] == "") != (want[2] == "completed") {
			p.t.Errorf("row %d is %q, want %q", i, record, want)
		}
	}
}
