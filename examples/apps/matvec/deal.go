package matvec

// deal is how the rows are dealt out: each to a rank, then again from the first rank on.
type deal struct{ rows, each, ranks int }

// rounds is how often.
func (d deal) rounds() int {
	all := d.each * d.ranks
	return (d.rows + all - 1) / all
}

// block is the first row that a rank gets in a round, and how many it gets. The last
// round may not have rows for all ranks.
func (d deal) block(round, rank int) (first, n int) {
	first = min((round*d.ranks+rank)*d.each, d.rows)
	return first, min(d.each, d.rows-first)
}

// share is how many rows a rank gets in all, with padding.
func (d deal) share() int { return d.rounds() * d.each }
