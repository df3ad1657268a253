// Package link owns the addresses at which one event of one row can be answered by whoever has them: a place with a time
// after which the address is worth nothing, signed, so that nobody makes one up or turns one into another. It refuses to
// know what an answer does.
package link

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Place is where an event is waited for.
type Place struct {
	Run    string `json:"r"`
	Row    int64  `json:"o"` // ordinal
	Column int    `json:"c"`
	Step   int    `json:"s,omitempty"`
	Key    string `json:"k"`
}

var (
	// ErrInvalid: the text is no link of this deployment.
	ErrInvalid = errors.New("this link is not valid")
	// ErrExpired: it was one.
	ErrExpired = errors.New("this link has expired")
)

// maxText bounds what is looked at: a key of 500 bytes, at worst written as six bytes each, and the rest.
const maxText = 6 << 10

// signed is what the signature covers.
type signed struct {
	V int `json:"v"`
	Place
	Until int64 `json:"u,omitempty"` // unix seconds; 0: for good
}

// Sign makes the text of a link to a place, good until a time; zero: for good. It may stand in a URL's path as it is.
func (s Secret) Sign(at Place, until time.Time) string {
	p := signed{V: 1, Place: at}
	if !until.IsZero() {
		p.Until = until.Add(time.Second - 1).Unix() // a link never ends before its event
	}
	b, err := json.Marshal(p)
	if err != nil {
		return "" // a place always has a JSON form
	}
	return text.EncodeToString(b) + "." + text.EncodeToString(s.mac(b))
}

var text = base64.RawURLEncoding.Strict()

// macBytes of HMAC-SHA-256 are kept: 128 bits cannot be guessed, and a link is meant to fit a message.
const macBytes = 16

func (s Secret) mac(b []byte) []byte {
	h := hmac.New(sha256.New, s)
	h.Write([]byte("sluice answer 1\n")) // what this secret signs is a link and nothing else
	h.Write(b)
	return h.Sum(nil)[:macBytes]
}

// Open checks a link's text and returns its place. Errors: ErrInvalid, ErrExpired.
func (s Secret) Open(link string, now time.Time) (Place, error) {
	b, err := s.verified(link)
	if err != nil {
		return Place{}, err
	}
	var p signed
	if err := json.Unmarshal(b, &p); err != nil || p.V != 1 {
		return Place{}, fmt.Errorf("%w: it is of another version", ErrInvalid)
	}
	if p.Until != 0 && now.Unix() >= p.Until {
		return p.Place, ErrExpired
	}
	return p.Place, nil
}

func (s Secret) verified(link string) ([]byte, error) {
	if len(link) > maxText {
		return nil, ErrInvalid
	}
	body, signature, _ := strings.Cut(link, ".")
	b, err1 := text.DecodeString(body)
	mac, err2 := text.DecodeString(signature)
	if err1 != nil || err2 != nil || !hmac.Equal(mac, s.mac(b)) {
		return nil, ErrInvalid
	}
	if strings.ContainsAny(link, "\r\n") { // the decoder passes over them
		return nil, ErrInvalid
	}
	return b, nil
}
