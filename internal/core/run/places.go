package run

// leave is a worker's last word when it found nothing to take: somebody else may have to act now.
func (p *pool) leave() {
	p.offer()
	p.tell()
}

// offer lets turning rows have the places that are free, under the lock.
func (p *pool) offer() {
	if p.turning > 0 && p.atWork < p.limit {
		p.wanted = false
		p.freed()
	}
}

// pause gives the place of a row up while it waits for its turn.
func (p *pool) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atWork--
	p.turning++
	p.offer()
	p.feed()
	p.tell()
}

// unpause takes a place for a row that goes on, also when there is none: it will not keep it for long.
func (p *pool) unpause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atWork++
	p.turning--
}

// unpauseSome takes places for up to so many rows that go on, or for none if there are fewer than least. While there are
// fewer than are wanted, no fresh row takes any.
func (p *pool) unpauseSome(rows, least int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := max(p.limit-p.atWork, 0)
	if free < rows {
		p.wanted = true
	}
	if free < least {
		return 0
	}
	rows = min(rows, free)
	p.atWork += rows
	p.turning -= rows
	return rows
}

// places is how many rows more may be at work, and whether no rows are under way but so many at work and so many turning.
func (p *pool) places(atWork, turning int) (free int, only bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.limit-p.atWork, 0), p.atWork == atWork && p.turning == turning
}
