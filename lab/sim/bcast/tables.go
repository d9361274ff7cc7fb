package bcast

// The cycle time in nanoseconds and the word size in bytes of the machine described in the source.
const (
	SourceNanoseconds = 10
	SourceWord        = 4
)

// Cell compares atomic broadcasts with and without a change of the transmission order, on the machine described in the
// source. The root is P0, and the only busy node is P1.
type Cell struct {
	Nodes     int `json:"nodes"`
	Bytes     int `json:"bytes"`
	BusyBytes int `json:"left_bytes"`
	Atomic    int `json:"atomic_ns"`
	// Changed is the time with the full change of the order. The initial change takes the same time if one node is
	// busy.
	Changed int     `json:"changed_ns"`
	Ratio   float64 `json:"ratio"`
}

func cell(nodes, bytes, left int) (Cell, error) {
	setup := Setup{Nodes: nodes, Bytes: bytes, Word: SourceWord, BusyBytes: map[int]int{1: left}}
	fixed, err := Run(setup, Atomic)
	if err != nil {
		return Cell{}, err
	}
	changed, err := Run(setup, FullOrder)
	if err != nil {
		return Cell{}, err
	}
	return Cell{
		Nodes: nodes, Bytes: bytes, BusyBytes: left, Atomic: SourceNanoseconds * int(fixed.Cycles),
		Changed: SourceNanoseconds * int(changed.Cycles),
		Ratio:   float64(fixed.Cycles) / float64(changed.Cycles),
	}, nil
}

// Table2 returns the rows of table 2 in the source.
func Table2() ([]Cell, error) {
	var rows []Cell
	for _, r := range [...]struct{ nodes, left int }{{4, 32}, {8, 32}, {16, 128}, {32, 128}} {
		c, err := cell(r.nodes, 4, r.left)
		if err != nil {
			return nil, err
		}
		rows = append(rows, c)
	}
	return rows, nil
}

// Figures returns the points of figures 18 to 21 in the source, ordered by nodes, bytes in flight, and length.
func Figures() ([]Cell, error) {
	var points []Cell
	for _, nodes := range [...]int{4, 8, 16, 32} {
		for _, left := range [...]int{32, 128, 512, 1536} {
			for bytes := 4; bytes <= 2048; bytes *= 2 {
				c, err := cell(nodes, bytes, left)
				if err != nil {
					return nil, err
				}
				points = append(points, c)
			}
		}
	}
	return points, nil
}
