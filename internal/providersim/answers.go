package providersim

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
)

// kinds are the APIs that a provider can be. An answer is a function of the request alone.
var kinds = map[string]func(asked) (status int, body any){
	"company": company, // GET /companies/{domain}
	"phone":   phone,   // GET /phones/{domain}
	"search":  search,  // GET /search?domain=
	"verify":  verify,  // POST /verify {"email": ...}
	"chat":    chat,    // POST /messages {"text": ...}
}

type object = map[string]any

// sum is the FNV-1a hash (32 bits) that all simulated knowledge derives from.
func sum(parts ...string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.Join(parts, "|")))
	return h.Sum32()
}

var (
	suffixes   = []string{"GmbH", "AG", "Ltd", "Inc", "SA"}
	industries = []string{"Software", "Logistics", "Construction", "Food", "Energy", "Health", "Media", "Retail"}
	cities     = []string{"Berlin", "Köln", "Zürich", "Łódź", "Málaga", "Oslo", "Paris"}
)

func company(a asked) (int, any) {
	domain, ok := strings.CutPrefix(a.path, "/companies/")
	if !ok || a.method != http.MethodGet {
		return notFound("no such operation")
	}
	if refused, body := refuseDomain(domain); refused {
		return http.StatusUnprocessableEntity, body
	}
	h := sum("company", domain)
	if h%100 < 12 {
		return notFound("company not known")
	}
	return http.StatusOK, object{"company": object{
		"name":      companyName(domain) + " " + suffixes[h/100%5],
		"industry":  industries[h/500%8],
		"city":      cities[h/4000%7],
		"employees": 3 + h/28000%4000,
	}}
}

// companyName makes "Nord Bau" of "nord-bau.example".
func companyName(domain string) string {
	label, _, _ := strings.Cut(domain, ".")
	words := strings.Split(label, "-")
	for i, w := range words {
		if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, " ")
}

func phone(a asked) (int, any) {
	domain, ok := strings.CutPrefix(a.path, "/phones/")
	if !ok || a.method != http.MethodGet {
		return notFound("no such operation")
	}
	if refused, body := refuseDomain(domain); refused {
		return http.StatusUnprocessableEntity, body
	}
	h := sum("phone", a.provider, domain)
	if h%100 < 25 {
		return notFound("no phone known")
	}
	return http.StatusOK, object{"phone": number(h), "score": 50 + h/100%50}
}

func search(a asked) (int, any) {
	if a.path != "/search" || a.method != http.MethodGet {
		return notFound("no such operation")
	}
	domain := a.query["domain"]
	if refused, body := refuseDomain(domain); refused {
		return http.StatusUnprocessableEntity, body
	}
	h := sum("search", a.provider, domain)
	if h%100 < 20 {
		return http.StatusOK, object{"results": []any{}} // found nothing, and says so with 200
	}
	return http.StatusOK, object{"results": []any{object{"phone": number(h)}}}
}

func number(h uint32) string { return fmt.Sprintf("+49 30 %07d", h/100%10_000_000) }

func verify(a asked) (int, any) {
	if a.path != "/verify" || a.method != http.MethodPost {
		return notFound("no such operation")
	}
	email, _ := a.body["email"].(string)
	if email == "" {
		return http.StatusUnprocessableEntity, object{"error": "email is required"}
	}
	h := sum("verify", email)
	if h%100 < 3 {
		return http.StatusUnprocessableEntity, object{"error": "mail server refuses to be asked"}
	}
	return http.StatusOK, object{"email": email, "deliverable": h/100%100 >= 15}
}

func chat(a asked) (int, any) {
	text, ok := a.body["text"].(string)
	if a.path != "/messages" || a.method != http.MethodPost || !ok {
		return notFound("no such operation")
	}
	return http.StatusOK, object{"ok": true, "id": fmt.Sprintf("m-%08x", sum("chat", text))}
}

// refuseDomain is what all of them do with a domain that nobody can own (RFC 6761).
func refuseDomain(domain string) (bool, any) {
	if domain == "" || strings.HasSuffix(domain, ".invalid") {
		return true, object{"error": "not a domain that can be registered"}
	}
	return false, nil
}

func notFound(why string) (int, any) { return http.StatusNotFound, object{"error": why} }
