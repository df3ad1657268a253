package cloud

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"sluice/internal/providersim"
)

// question is the key under which a row of such a run waits.
func question(run, email string) string { return run + ": may " + email + " be asked?" }

// consenting is a run that sends a person a link for each row, and verifies the addresses of those who say yes. A row may say
// for how long it waits.
func (p *providers) consenting(run, chat, verifier string, rows []map[string]any) order {
	return order{Run: run, Rows: rows, Map: fmt.Sprintf(`version: 1
name: consent
columns:
  - name: consent
    event:
      key: "%[1]s: may ${row.email} be asked?"
      expires: "${has(row.time) ? row.time : '3h'}"
      notify: {call: %[2]s.post, with: {text: "${row.email}? ${answer.url} ."}}
      onTimeout: {value: nobody}
  - {name: ok, call: %[3]s.verify, with: {email: "${row.email}"}, when: "${cells.consent == true}", onError: {value: refused}}
output: {email: "${row.email}", consent: "${cells.consent}", ok: "${cells.ok}"}
`, run, chat, verifier), Tools: fmt.Sprintf(`version: 1
providers:
  %[1]s: {url: "%[3]s/%[1]s", allowPrivate: true, limits: [{rate: 100, per: 1s}]}
  %[2]s: {url: "%[3]s/%[2]s", allowPrivate: true, limits: [{rate: 100, per: 1s}]}
tools:
  %[1]s.post: {method: POST, path: /messages, body: {text: "${input.text}"}, input: {text: string}}
  %[2]s.verify: {method: POST, path: /verify, body: {email: "${input.email}"}, input: {email: string}, fence: Idempotency-Key, result: "${body.deliverable}"}
`, chat, verifier, p.url)}
}

var linked = regexp.MustCompile(`"text":"(\S+)\? (https://\S+) \."`)

// links are the addresses that were sent, by whom they are about.
func (p *providers) links(chat string) map[string]string {
	p.t.Helper()
	found := map[string]string{}
	for request, n := range p.times(chat) {
		parts := linked.FindStringSubmatch(request)
		if parts == nil || n != 1 {
			p.t.Fatalf("%d times %s", n, request)
		}
		found[parts[1]] = parts[2]
	}
	return found
}

// person is somebody with a browser, and without a key.
type person struct {
	t *testing.T
	s *stack
}

// opens is what the browser shows at a link.
func (p person) opens(link string, status int, want ...string) {
	p.t.Helper()
	p.shows(http.MethodGet, link, nil, status, want)
}

// says sends the page's form, which goes to the page's own address.
func (p person) says(link, answer string, status int, want ...string) {
	p.t.Helper()
	p.shows(http.MethodPost, link, url.Values{"value": {answer}}, status, want)
}

func (p person) shows(method, link string, form url.Values, status int, want []string) {
	p.t.Helper()
	address, err := p.s.within(link)
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	got, page := exchange(p.t, req)
	if got != status || !strings.HasPrefix(string(page), "<!DOCTYPE html>") {
		p.t.Fatalf("%s %s: status %d, want %d, and a page:\n%s", method, link, got, status, page)
	}
	for _, part := range want {
		if !strings.Contains(string(page), part) {
			p.t.Errorf("%s %s: %q is not in\n%s", method, link, part, page)
		}
	}
}

// Three people get links. One says yes on the page behind the API's stage, and the row goes on while the others wait. The link
// is good once; one that was changed, or whose time is over, is refused on a page that says so.
func TestPeopleAnswerByLink(t *testing.T) {
	s := deployed(t)
	t.Parallel()
	run, chat, verifier := named("linked"), named("linkchat"), named("linkverify")
	p := simulate(t, providersim.Provider{Name: chat, Kind: "chat"}, providersim.Provider{Name: verifier, Kind: "verify"})
	const yes, late, no = "yes@linked.example", "late@linked.example", "no@linked.example"
	s.start(t, p.consenting(run, chat, verifier, []map[string]any{
		{"email": yes, "time": "3h"}, {"email": late, "time": "25s"}, {"email": no, "time": "3h"},
	}))
	eventually(t, soon, "all have their links", func() bool { return len(p.times(chat)) == 3 })
	links, somebody := p.links(chat), person{t, s}

	somebody.opens(links[yes], http.StatusOK, "What is your answer?", question(run, yes), `<form method="post">`,
		`<button name="value" value="true">Yes</button>`, "Run "+run+", row 1, column consent.")
	somebody.says(links[yes], "true", http.StatusOK, "Thank you", "<pre>true</pre>")
	eventually(t, soon, "the row goes on", func() bool { return p.times(verifier)[verifies(verifier, yes)] == 1 })
	if v := s.view(t, run); v.Status == "completed" {
		t.Errorf("the others do not wait: %+v", v)
	}
	somebody.says(links[yes], "false", http.StatusOK, "This was answered before", "<pre>true</pre>")
	somebody.opens(links[yes], http.StatusOK, "This was answered", "<pre>true</pre>")

	text, _ := cutLast(links[no], ".") // what the signature is for
	_, signature := cutLast(links[yes], ".")
	for _, forged := range []string{text + "." + signature, text, links[no] + "A"} {
		somebody.opens(forged, http.StatusNotFound, "This link is not valid")
		somebody.says(forged, "true", http.StatusNotFound, "This link is not valid")
	}

	eventually(t, soon, "the second row's time is over", func() bool { return s.view(t, run).Completed == 2 })
	somebody.opens(links[late], http.StatusGone, "This is not waited for any more")
	somebody.says(links[late], "true", http.StatusGone, "This is not waited for any more")

	somebody.opens(links[no]+"?value=false", http.StatusOK, "Do you give this answer?", `name="value" value="false"`)
	somebody.says(links[no]+"?value=false", "false", http.StatusOK, "Thank you", "<pre>false</pre>")
	s.ended(t, run, "completed", soon)
	if n := p.report(verifier).Received; n != 1 || len(p.times(chat)) != 3 {
		t.Errorf("%d verified, messages %v; want 1, and one message for each row", n, p.times(chat))
	}
	want := fmt.Sprintf("email,consent,ok\n%s,true,%s\n%s,nobody,\n%s,false,\n", yes, p.ask(verifier, yes), late, no)
	if got := s.export(t, run); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func cutLast(s, sep string) (before, after string) {
	i := strings.LastIndex(s, sep)
	return s[:i], s[i+len(sep):]
}
