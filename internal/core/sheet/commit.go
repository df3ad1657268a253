package sheet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sluice/internal/core/frame"
	"sluice/internal/core/store"
	"sluice/internal/core/table"
)

func (j *Journal) commitAll() {
	defer close(j.stopped)
	for {
		select {
		case <-j.wake:
		case <-j.stop:
			j.commit(j.take())
			return
		}
		j.lingerForCompany()
		j.commit(j.take())
	}
}

// lingerForCompany waits until the group is full, or the time is over. A group that would not fill the smallest unit of
// billing waits longer: where calls are few, waiting costs them nothing, and every write costs as much as a full one.
func (j *Journal) lingerForCompany() {
	if j.linger <= 0 {
		return
	}
	began := time.Now()
	timer := time.NewTimer(j.linger)
	defer timer.Stop()
	for {
		switch waited, size := time.Since(began), j.openBytes(); {
		case size >= groupBytes, waited >= j.linger && size >= unitBytes, waited >= patience*j.linger:
			return
		case waited >= j.linger:
			timer.Reset(patience*j.linger - waited)
		}
		select {
		case <-timer.C:
		case <-j.wake:
		case <-j.stop:
			return
		}
	}
}

func (j *Journal) openBytes() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.open.buf)
}

func (j *Journal) take() *group {
	j.mu.Lock()
	defer j.mu.Unlock()
	g := j.open
	j.open = j.newGroup()
	return g
}

// commit makes a group durable, or closes the journal with the reason why it is not.
func (j *Journal) commit(g *group) {
	err := j.Err()
	if err == nil && len(g.buf) > 0 {
		err = j.put(g)
	}
	j.mu.Lock()
	j.backlog -= len(g.buf)
	if len(g.buf) > 0 {
		j.marks = append(j.marks, mark{g.at, j.total})
		j.total += int64(len(g.buf))
	}
	if err != nil && j.failed == nil {
		j.failed = err
	}
	if j.failed == nil {
		j.counts, j.counted = j.counts.Plus(g.ends), Position{Epoch: g.at.Epoch, Seq: g.at.Seq + 1}
	}
	j.room.Broadcast()
	j.mu.Unlock()
	g.err, g.buf = err, nil
	close(g.done)
	j.told(g.ends, err)
}

// retryPuts is how often a failed write of a group is repeated. The write is idempotent: key and bytes are fixed.
var retryPuts = []time.Duration{50 * time.Millisecond, 250 * time.Millisecond}

// saveTimeout bounds one durable write. It does not depend on the caller's context: what was paid for is saved
// also when the run is being cancelled.
const saveTimeout = 20 * time.Second

func (j *Journal) put(g *group) error {
	counts, _ := j.Counted()
	head, err := json.Marshal(groupHead{Counts: counts.Plus(g.ends), Stats: j.stats()})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	plain := make([]byte, 0, len(g.buf)+len(head)+32)
	plain = append(append(append(plain, `{"v":1,"h":`...), head...), `,"r":[`...)
	plain = append(append(plain, g.buf...), `]}`...)
	e := store.Entry{Key: table.Key{Part: shardPart(j.run, j.shard), Sort: journalSort(g.at)}, Version: 1, Value: frame.SealFast(plain)}
	if j.keep > 0 {
		e.Expires = time.Now().Add(j.keep)
	}
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
		err = j.st.SaveEntry(ctx, e, table.Always())
		cancel()
		j.setTrouble(err != nil)
		if err == nil {
			return nil
		}
		if try == len(retryPuts) || errors.Is(err, table.ErrTooLarge) {
			return fmt.Errorf("%w: %w", ErrJournal, err)
		}
		time.Sleep(retryPuts[try])
	}
}

func (j *Journal) setTrouble(on bool) {
	j.mu.Lock()
	j.trouble = on
	j.mu.Unlock()
}

// Trouble reports whether results cannot be saved right now. Until it is over, no call may be dispatched (T5).
func (j *Journal) Trouble() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.trouble || j.failed != nil
}
