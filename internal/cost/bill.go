// Package cost says what a run costs at the list prices of AWS. It owns the prices (prices.go) and the count of state
// transitions, which follows from the state machines; it refuses to measure anything: what a run used is in its record.
//
// Not in a bill: the start through API Gateway and EventBridge, logs, storage, transfer to the providers, what the
// providers charge, and retries of the state machines' own.
package cost

// Usage is what a run used of AWS.
type Usage struct {
	Rows        int64 // without duplicates
	Transitions int64 // of Step Functions' state machines

	RunmapRequests   int64 // invocations
	ToolexecRequests int64
	RunmapMs         int64 // duration of all invocations together
	ResidentWaitMs   int64 // of RunmapMs: every row waited
	ToolexecMs       int64
	RunmapMB         int64 // memory of the function
	ToolexecMB       int64

	WriteUnits, ReadUnits int64 // of DynamoDB
	Puts, Gets            int64 // requests to S3
}

// Line is one thing that is charged for. Its JSON has dollars as numbers, unrounded.
type Line struct {
	Name     string  `json:"name"`
	Quantity float64 `json:"quantity"`
	Unit     string  `json:"unit"`
	Dollars  float64 `json:"dollars"`
}

// Names of the lines.
const (
	Transitions  = "state transitions"
	Requests     = "Lambda requests"
	RunmapBusy   = "runmap, at work"
	RunmapWait   = "runmap, all rows waiting"
	ToolexecBusy = "toolexec"
	Writes       = "DynamoDB writes"
	Reads        = "DynamoDB reads"
	Puts         = "S3 PUT"
	Gets         = "S3 GET"
)

// LaptopNote is what a bill must say of a run that was not worked on AWS.
const LaptopNote = "this run was on a laptop; this is what the same work would cost on AWS"

// Bill is what a usage costs, in US dollars.
type Bill struct {
	Prices     string  `json:"prices"` // whose, and as of when
	Rows       int64   `json:"rows"`
	Lines      []Line  `json:"lines"`
	Note       string  `json:"note,omitempty"` // whoever prints it has something to say
	Total      float64 `json:"total"`
	PerMillion float64 `json:"perMillionRows"` // the total, scaled; 0 without rows
}

// Of prices a usage. It is a pure function.
func Of(u Usage) Bill {
	wait := min(u.ResidentWaitMs, u.RunmapMs)
	b := Bill{Prices: PricesOf, Rows: u.Rows, Lines: []Line{
		line(Transitions, float64(u.Transitions), "", perTransition),
		line(Requests, float64(u.RunmapRequests+u.ToolexecRequests), "", perInvocation),
		line(RunmapBusy, gigabyteSeconds(u.RunmapMs-wait, u.RunmapMB), gbs, perGBSecond),
		line(RunmapWait, gigabyteSeconds(wait, u.RunmapMB), gbs, perGBSecond),
		line(ToolexecBusy, gigabyteSeconds(u.ToolexecMs, u.ToolexecMB), gbs, perGBSecond),
		line(Writes, float64(u.WriteUnits), "units", perWriteUnit),
		line(Reads, float64(u.ReadUnits), "units", perReadUnit),
		line(Puts, float64(u.Puts), "", perPut),
		line(Gets, float64(u.Gets), "", perGet),
	}}
	for _, l := range b.Lines {
		b.Total += l.Dollars
	}
	b.PerMillion = b.Scaled(b.Total)
	return b
}

const gbs = "GB-s"

func line(name string, quantity float64, unit string, price float64) Line {
	return Line{name, quantity, unit, quantity * price}
}

func gigabyteSeconds(millis, megabytes int64) float64 {
	return float64(millis) / 1000 * float64(megabytes) / 1024
}

// Scaled is an amount of this bill per million rows; 0 without rows.
func (b Bill) Scaled(amount float64) float64 {
	if b.Rows <= 0 {
		return 0
	}
	return amount / float64(b.Rows) * 1_000_000
}
