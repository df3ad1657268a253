package run

import (
	"math"

	"sluice/internal/core/mapspec"
)

// What one slice can do, for deciding how many shards a run is worth. They are estimates: too many shards cost a few
// store operations each, too few cost time.
const (
	rowsPerShard  = 100_000
	callsPerShard = 250.0 // a second: AutoConcurrency calls at once, of a quarter of a second each
	maxShards     = 40
)

// shardsFor decides how many shards work on the run side by side: as many as its size is worth, but no more than the
// limits of its providers can keep busy. A run that is bound by a slow limit gets one.
func shardsFor(m *mapspec.Map, rows int64, pages int) int {
	bySize := math.Ceil(float64(rows) / rowsPerShard)
	byLimits := math.Ceil(callRate(m) / callsPerShard)
	return int(max(1, min(bySize, byLimits, float64(pages), maxShards)))
}

// callRate is how many calls a second the map's providers allow together, at the pace of the slowest: every row calls
// each of them. A map without calls is not bound by any.
func callRate(m *mapspec.Map) float64 {
	calls := map[*mapspec.Provider]float64{} // of a row that takes the first step of every waterfall
	for c := range m.Columns {
		if steps := m.Columns[c].Steps; len(steps) > 0 {
			calls[steps[0].Tool.Provider]++
		}
	}
	rows, perRow := math.Inf(1), 0.0
	for p, n := range calls {
		perRow += n
		for _, limit := range p.Limits {
			rows = min(rows, float64(limit.Rate)/limit.Per.Seconds()/n)
		}
	}
	if perRow == 0 {
		return math.Inf(1)
	}
	return rows * perRow
}
