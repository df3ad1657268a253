package run_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"sluice/internal/core/gateway"
	"sluice/internal/core/hold"
	"sluice/internal/core/table"
)

const (
	manyCalls = 10_000
	perSecond = 50
	// cooldown is what a refusal without a deadline is waited for, at least.
	cooldown = 500 * time.Millisecond
)

// announced is a refusal with its deadline, in one of the forms that providers use; the last one says nothing. Dates and
// epochs have whole seconds, and are rounded up, as by a provider that does not want to be asked too early.
func announced(form int, wait time.Duration) (*gateway.Response, time.Time) {
	now := time.Now()
	ms, seconds := (wait + time.Millisecond - 1).Truncate(time.Millisecond), (wait + time.Second - 1).Truncate(time.Second)
	whole := now.Add(wait + time.Second - 1).Truncate(time.Second)
	switch form % 7 {
	case 0:
		return refusal("Retry-After", strconv.FormatFloat(ms.Seconds(), 'f', 3, 64)), now.Add(ms)
	case 1:
		return refusal("Retry-After", strconv.Itoa(int(seconds/time.Second))), now.Add(seconds)
	case 2:
		return refusal("Retry-After-Ms", strconv.FormatInt(ms.Milliseconds(), 10)), now.Add(ms)
	case 3:
		return refusal("Retry-After", whole.UTC().Format(http.TimeFormat)), whole
	case 4:
		return refusal("X-Reset", strconv.FormatInt(whole.Unix(), 10)), whole
	case 5:
		return refusal("X-Reset", ms.String()), now.Add(ms)
	}
	return refusal(), now.Add(cooldown)
}

// deadlines are what a site has announced, in the order in which it did.
type deadlines []struct{ from, until time.Duration }

func (d *deadlines) add(from, until time.Duration) {
	*d = append(*d, struct{ from, until time.Duration }{from, until})
}

// held is for how long nobody was to ask.
func (d deadlines) held() (all time.Duration) {
	var end time.Duration
	for _, s := range d {
		if s.until > end {
			all += s.until - max(end, s.from)
			end = s.until
		}
	}
	return all
}

// early counts who asked all the same, though the deadline had been answered by then.
func (d deadlines) early(hits []hit) (n int) {
	var end time.Duration
	i := 0
	for _, h := range hits {
		for i < len(d) && d[i].from < h.at {
			end = max(end, d[i].until)
			i++
		}
		if h.at < end {
			n++
		}
	}
	return n
}

// refusing is a world whose site refuses, by what judge says, with deadlines in these forms.
func refusing(t *testing.T, tbl table.Table, forms []int, judge func(path string, nth int) (wait time.Duration)) (p *paced, said *deadlines, due map[string]time.Duration) {
	time.Sleep(3 * 365 * 24 * time.Hour) // the bubble begins in 2000, when an epoch still looked like a number of seconds
	p = newPaced(t, tbl, fmt.Sprintf("limits: [{rate: %d, per: 1s}], cooldown: %v, resetHeaders: [x-reset]", perSecond, cooldown))
	said, due = &deadlines{}, map[string]time.Duration{}
	p.site.answer = func(path string, nth int) *gateway.Response {
		wait := judge(path, nth)
		if wait <= 0 {
			return nil
		}
		res, until := announced(forms[len(*said)%len(forms)], wait)
		due[path] = until.Sub(p.site.started)
		said.add(time.Since(p.site.started), due[path])
		return res
	}
	return p, said, due
}

var (
	everyForm  = []int{0, 1, 2, 3, 4, 5, 6}
	exactForms = []int{0, 2, 5}
)

// Three calls of ten are refused when they are first made, with deadlines in every form. Nobody asks before a deadline,
// neither the refused call nor its siblings; each call is refused once; and all of it takes hardly longer than the deadlines and
// the limit take.
func TestTenThousandCallsOfWhichThreeOfTenAreRefused(t *testing.T) {
	onMemory(t, func(t *testing.T, tbl table.Table) {
		p, said, due := refusing(t, tbl, everyForm, func(path string, nth int) time.Duration {
			luck := hold.Fraction(path)
			if nth > 0 || luck >= 0.3 {
				return 0
			}
			return 100*time.Millisecond + time.Duration(luck*float64(5*time.Second))
		})
		job := p.plan("r1", callA, rows(manyCalls)...)
		p.process("a", job)
		p.export(job)
		hits, refused := p.site.hits(), len(*said)
		seen := map[string]int{}
		for _, h := range hits {
			if seen[h.path]++; seen[h.path] == 2 && h.at < due[h.path] {
				t.Errorf("%s was asked again %v before its deadline", h.path, due[h.path]-h.at)
			}
		}
		took, bound := hits[len(hits)-1].at-hits[0].at, said.held()+time.Duration(len(hits)-1)*time.Second/perSecond
		t.Logf("%d requests, %.1f %% refused, %d before a deadline; %v, of which %v were held; the bound is %v: %.3f", len(hits),
			100*float64(refused)/float64(len(hits)), said.early(hits), took, said.held(), bound, float64(took)/float64(bound))
		if len(hits) != manyCalls+refused || refused < 2900 || refused > 3100 {
			t.Errorf("%d requests for %d calls of which %d were refused", len(hits), manyCalls, refused)
		}
		if n := said.early(hits); n > 0 {
			t.Errorf("%d requests came before a deadline", n)
		}
		if float64(took) > 1.1*float64(bound) {
			t.Errorf("it took %v, and the deadlines and the limit take %v", took, bound)
		}
		p.site.strict(perSecond, time.Second)
	})
}

// A provider takes 35 calls a second, and its catalogue says 50: three of ten would be too many. It announces when its window
// frees. Few are asked too early; where the deadlines are exact the limit is used in full, and otherwise all but what the
// deadlines take away.
func TestTenThousandCallsUnderALimitThatIsLowerThanDeclared(t *testing.T) {
	const taken = 35
	for name, forms := range map[string][]int{"exact deadlines": exactForms, "deadlines in every form": everyForm} {
		t.Run(name, func(t *testing.T) {
			onMemory(t, func(t *testing.T, tbl table.Table) {
				var accepted []time.Time
				p, said, _ := refusing(t, tbl, forms, func(string, int) time.Duration {
					now := time.Now()
					if n := len(accepted); n >= taken && now.Sub(accepted[n-taken]) < time.Second {
						return time.Second - now.Sub(accepted[n-taken])
					}
					accepted = append(accepted, now)
					return 0
				})
				job := p.plan("r1", callA, rows(manyCalls)...)
				p.process("a", job)
				p.export(job)
				hits := p.site.hits()
				took, bound := hits[len(hits)-1].at-hits[0].at, (manyCalls-1)/taken*time.Second
				if len(forms) > len(exactForms) {
					bound = max(bound, said.held()+time.Duration(len(hits)-1)*time.Second/perSecond)
				}
				share := float64(len(*said)) / float64(len(hits))
				t.Logf("%d requests, %.1f %% refused, %d before a deadline; %v, the bound is %v: %.3f", len(hits), 100*share, said.early(hits), took, bound,
					float64(took)/float64(bound))
				if len(accepted) != manyCalls || said.early(hits) > 0 || share > 0.05 || float64(took) > 1.1*float64(bound) {
					t.Errorf("%d calls took %v of %v, %.1f %% refused, %d before a deadline", len(accepted), took, bound, 100*share, said.early(hits))
				}
			})
		})
	}
}
