package call

// BodyUse is what reading the bodies of answers took of the memory that is set aside for them (M8).
type BodyUse struct {
	Turns    int64 `json:"turns"`    // bodies that were read
	Bytes    int64 `json:"bytes"`    // measured in them, unpacked
	Peak     int64 `json:"peak"`     // most bytes that were set aside at one moment
	Waits    int64 `json:"waits"`    // turns that had to wait for room
	WaitMs   int64 `json:"waitMs"`   // for so long, in all
	Refusals int64 `json:"refusals"` // bodies that were larger than allowed
}

// BodyMeter is a Gateway that tells what reading bodies took.
type BodyMeter interface {
	BodyUse() BodyUse
}

// Plus adds the use by another process.
func (u BodyUse) Plus(o BodyUse) BodyUse {
	return BodyUse{
		Turns: u.Turns + o.Turns, Bytes: u.Bytes + o.Bytes, Peak: max(u.Peak, o.Peak),
		Waits: u.Waits + o.Waits, WaitMs: u.WaitMs + o.WaitMs, Refusals: u.Refusals + o.Refusals,
	}
}

// Since is the use after the earlier one of the same process. The peak stays that of the process.
func (u BodyUse) Since(o BodyUse) BodyUse {
	return BodyUse{
		Turns: u.Turns - o.Turns, Bytes: u.Bytes - o.Bytes, Peak: u.Peak,
		Waits: u.Waits - o.Waits, WaitMs: u.WaitMs - o.WaitMs, Refusals: u.Refusals - o.Refusals,
	}
}
