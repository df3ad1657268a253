package providersim

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// The finished table of the demo was worked out by examples/expected.py from its own restatement of what the
// providers know. Each row of it is asked again here: two implementations that agree on 626 rows know the same.
func TestDemoProvidersKnowWhatTheExpectedTableSays(t *testing.T) {
	f, err := os.Open("../../examples/expected.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 600 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, record := range rows[1:] {
		row := map[string]string{}
		for i, name := range rows[0] {
			row[name] = record[i]
		}
		checkRow(t, row)
	}
}

func checkRow(t *testing.T, want map[string]string) {
	t.Helper()
	email := want["email"]
	_, domain, _ := strings.Cut(strings.ToLower(email), "@")
	if domain == "" || domain == "freemail.example" || domain == "postbox.example" {
		return
	}
	status, got := know("acme", "GET", "/companies/"+domain, "")
	if (status == 422) != (want["_status"] == "failed") {
		t.Errorf("%s: company status %d, row %s", email, status, want["_status"])
	}
	if status == 422 {
		return
	}
	firm, _ := got["company"].(map[string]any)
	for column, field := range map[string]string{"company": "name", "industry": "industry", "city": "city", "employees": "employees"} {
		if value := text(firm[field]); value != want[column] {
			t.Errorf("%s: %s is %q, want %q", email, column, value, want[column])
		}
	}
	if value := phoneOf(domain); value != want["phone"] {
		t.Errorf("%s: phone is %q, want %q", email, value, want["phone"])
	}
	body, _ := json.Marshal(map[string]string{"email": email})
	deliverable := "unknown"
	if status, got := know("mail", "POST", "/verify", string(body)); status == 200 {
		deliverable = text(got["deliverable"])
	}
	if deliverable != want["deliverable"] {
		t.Errorf("%s: deliverable is %q, want %q", email, deliverable, want["deliverable"])
	}
}

func phoneOf(domain string) string {
	if status, got := know("alpha", "GET", "/phones/"+domain, ""); status == 200 && got["score"].(float64) >= 80 {
		return text(got["phone"])
	}
	_, got := know("beta", "GET", "/search?domain="+domain, "")
	if results := got["results"].([]any); len(results) > 0 {
		return text(results[0].(map[string]any)["phone"])
	}
	return ""
}

// know asks a provider of the demo without its limits and troubles.
func know(provider, method, path, body string) (int, map[string]any) {
	for _, p := range Demo().Providers {
		if p.Name != provider {
			continue
		}
		a, _, _ := read(p.Name, httptest.NewRequest(method, "/"+p.Name+path, strings.NewReader(body)))
		status, answer := kinds[p.Kind](a)
		b, _ := json.Marshal(answer)
		var out map[string]any
		_ = json.Unmarshal(b, &out)
		return status, out
	}
	return 0, nil
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// The demo is meant to show each kind of trouble; a change of its numbers must not lose one.
func TestDemoShowsEachKindOfTrouble(t *testing.T) {
	seen := map[string]bool{}
	forms := map[Announce]bool{}
	for _, p := range Demo().Providers {
		seen["bare"] = seen["bare"] || p.Bare > 0
		seen["503"] = seen["503"] || p.Unavailable > 0
		seen["cut"] = seen["cut"] || p.Cut > 0
		seen["slow"] = seen["slow"] || p.Slow > 0
		for _, o := range p.Outages {
			forms[o.Announce] = true
		}
	}
	if len(forms) != 3 || !seen["bare"] || !seen["503"] || !seen["cut"] || !seen["slow"] {
		t.Errorf("the demo shows %v %v", seen, forms)
	}
}
