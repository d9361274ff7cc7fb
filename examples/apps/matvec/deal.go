package matvec

// deal is the distribution of the rows: each rank in turn gets each rows.
type deal struct{ rows, each, ranks int }

// rounds returns the number of turns.
func (d deal) rounds() int {
	all := d.each * d.ranks
	return (d.rows + all - 1) / all
}

// block returns the first row that a rank gets in a round, and the number of rows. The last round may not have rows for
// all ranks.
func (d deal) block(round, rank int) (first, n int) {
	first = min((round*d.ranks+rank)*d.each, d.rows)
	return first, min(d.each, d.rows-first)
}

// share returns the total number of rows that a rank gets, including padding.
func (d deal) share() int { return d.rounds() * d.each }
