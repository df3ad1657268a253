package providersim

import (
	"time"
)

// Demo is the configuration that the examples are written for.
func Demo() Config {
	second, minute := Duration(time.Second), Duration(time.Minute)
	return Config{Providers: []Provider{
		{
			Name: "acme", Kind: "company", Key: "demo-acme",
			Limits:      []Limit{{10, second, Seconds}, {150, minute, Date}},
			Unavailable: 30, Slow: 50, SlowBy: Duration(1200 * time.Millisecond),
		},
		{
			Name: "alpha", Kind: "phone", Key: "demo-alpha",
			Limits:  []Limit{{20, second, Seconds}},
			Outages: []Outage{{After: 60, For: Duration(8 * time.Second), Announce: Seconds}},
			Cut:     40, Concurrency: 8,
		},
		{
			Name: "beta", Kind: "search", Key: "demo-beta",
			Limits:  []Limit{{10, second, Seconds}, {200, minute, Date}},
			Outages: []Outage{{After: 30, For: Duration(3 * time.Second), Announce: Date}},
			Cut:     20, Unavailable: 20,
		},
		{
			Name: "mail", Kind: "verify", Key: "demo-mail",
			Limits:  []Limit{{25, second, Reset}, {700, minute, Date}},
			Outages: []Outage{{After: 250, For: Duration(2 * time.Second), Announce: Reset}},
			Bare:    6, Unavailable: 10, Slow: 10, SlowBy: Duration(1500 * time.Millisecond),
		},
		{Name: "chat", Kind: "chat", Key: "demo-chat", Limits: []Limit{{1, second, Seconds}}},
	}}
}
