package call

// Billed is the time of functions that is paid for, and their memory, which decides what a second costs.
type Billed struct {
	Millis   int64 `json:"millis"`
	MemoryMB int64 `json:"memoryMB,omitempty"` // 0: not known
}

// Plus adds the time of another invocation. The memory is that of the latest that tells.
func (b Billed) Plus(o Billed) Billed {
	if o.MemoryMB == 0 {
		o.MemoryMB = b.MemoryMB
	}
	return Billed{Millis: b.Millis + o.Millis, MemoryMB: o.MemoryMB}
}

// BilledGateway is a Gateway whose calls are made by functions that are billed by their time.
type BilledGateway interface {
	Gateway
	Billed() Billed // so far
}
