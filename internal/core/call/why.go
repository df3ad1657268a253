package call

// Why says what keeps a call waiting, and with it its row.
type Why struct {
	Reason Reason `json:"reason,omitempty"` // empty: not known
	Code   string `json:"code,omitempty"`   // of the answer or the failure behind it, such as HTTP_429 (docs/errors.md)
}

// Reason is a kind of waiting.
type Reason string

// The kinds of waiting.
const (
	RetryAfter  Reason = "retryAfter"  // the provider refused, and said until when
	Cooldown    Reason = "cooldown"    // the provider refused, and did not say until when
	RateLimit   Reason = "limit"       // as many calls as a limit of the catalogue allows have been made
	Concurrency Reason = "concurrency" // as many calls as may be are in flight
	Backoff     Reason = "backoff"     // a failure that may pass: another attempt follows
	Credential  Reason = "credential"  // the credential was not taken, and is read again
	Identical   Reason = "identical"   // another run is making the identical call
	Platform    Reason = "platform"    // the function that makes the calls was busy: the provider was not asked
	Boundary    Reason = "boundary"    // a resolver's sleep, or the end of its wait for an answer, comes before its calls
)
