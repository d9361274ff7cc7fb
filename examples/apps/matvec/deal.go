package matvec

// deal describes how the rows are distributed: each rank in turn gets each rows at a time.
type deal struct{ rows, each, ranks int }

// rounds returns the number of turns.
func (d deal) rounds() int {
	all := d.each * d.ranks
	return (d.rows + all - 1) / all
}

// block returns the first row that a rank gets in a round, and the number of rows. In the last round, there may
// not be rows for all ranks.
func (d deal) block(round, rank int) (first, n int) {
	first = min((round*d.ranks+rank)*d.each, d.rows)
	return first, min(d.each, d.rows-first)
}

// share returns the total number of rows that a rank gets, including padding.
func (d deal) share() int { return d.rounds() * d.each }
