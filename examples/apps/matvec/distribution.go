package matvec

// distribution describes how the rows are distributed: each rank in turn gets rowsPerTurn rows.
type distribution struct{ rows, rowsPerTurn, ranks int }

// rounds returns the number of turns.
func (d distribution) rounds() int {
	all := d.rowsPerTurn * d.ranks
	return (d.rows + all - 1) / all
}

// block returns the first row and the number of rows that a rank gets in a round. In the last round, the rows may not
// suffice for all ranks.
func (d distribution) block(round, rank int) (first, n int) {
	first = min((round*d.ranks+rank)*d.rowsPerTurn, d.rows)
	return first, min(d.rowsPerTurn, d.rows-first)
}

// rowsPerRank returns the total number of rows that a rank gets, including padding.
func (d distribution) rowsPerRank() int { return d.rounds() * d.rowsPerTurn }
