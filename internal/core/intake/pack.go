package intake

import "sluice/internal/core/frame"

// recycle keeps a draft for the next page, unless one oversized row has made it large.
func (s *stager) recycle(d *draft) {
	if cap(d.rows) > 2*MaxPagePlain {
		return
	}
	select {
	case s.free <- d:
	default:
	}
}

// pack digests and compresses drafts.
func (s *stager) pack() error {
	var plain []byte
	for {
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case j, ok := <-s.packing:
			if !ok {
				return nil
			}
			var out []packed
			var err error
			if plain, out, err = packRows(plain, j.draft, 0, len(j.draft.ends), nil); err != nil {
				return err
			}
			out[len(out)-1].weight = j.draft.weight()
			j.out <- out
			s.recycle(j.draft)
			if cap(plain) > 2*MaxPagePlain {
				plain = nil
			}
		}
	}
}

// packRows makes one page of rows i to j, or two and more if it would be over MaxPageSealed.
func packRows(plain []byte, d *draft, i, j int, out []packed) ([]byte, []packed, error) {
	plain, err := d.payload(plain[:0], i, j)
	if err != nil {
		return plain, nil, err
	}
	framed := frame.Seal(plain)
	if len(framed) > MaxPageSealed && j-i > 1 {
		half := i + (j-i)/2
		if plain, out, err = packRows(plain, d, i, half, out); err != nil {
			return plain, nil, err
		}
		return packRows(plain, d, half, j, out)
	}
	ref := PageRef{First: d.first + int64(i), Rows: j - i, Digest: pageDigest(plain)}
	return plain, append(out, packed{ref: ref, framed: framed}), nil
}
