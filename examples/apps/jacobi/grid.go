package jacobi

import (
	"fmt"
	"slices"
)

// Cell is the element type of a grid: int32, as in upstream's example, or float32.
type Cell interface{ int32 | float32 }

// Grid is a square of cells.
type Grid[T Cell] struct {
	// Size is the number of lines and columns.
	Size int
	// Cells holds the lines, consecutively.
	Cells []T
}

// NewGrid returns a grid that is 0 except for its border.
func NewGrid[T Cell](size int, border T) *Grid[T] {
	g := &Grid[T]{size, make([]T, size*size)}
	for i := range size {
		g.Line(0)[i], g.Line(size - 1)[i] = border, border
		g.Line(i)[0], g.Line(i)[size-1] = border, border
	}
	return g
}

// Line returns line i.
func (g *Grid[T]) Line(i int) []T { return g.Cells[i*g.Size:][:g.Size] }

// clone returns a copy of the grid.
func (g *Grid[T]) clone() *Grid[T] {
	return &Grid[T]{g.Size, slices.Clone(g.Cells)}
}

func (g *Grid[T]) check() error {
	if g.Size < minColumns || len(g.Cells) != g.Size*g.Size {
		return fmt.Errorf("%w: a grid of %d lines and %d cells: must be square, with at least %d lines", ErrOptions, g.Size,
			len(g.Cells), minColumns)
	}
	return nil
}

// Serial computes the given number of iterations of the grid on one processor, as a reference for Host.
func Serial[T Cell](grid *Grid[T], iterations int) {
	next := grid.clone()
	for range iterations {
		for i := 1; i < grid.Size-1; i++ {
			relax(next.Line(i), grid.Line(i-1), grid.Line(i), grid.Line(i+1))
		}
		grid.Cells, next.Cells = next.Cells, grid.Cells
	}
}

// relax computes all cells of a line except the first and the last.
func relax[T Cell](to, above, line, below []T) {
	switch to := any(to).(type) {
	case []int32:
		relaxInt(to, any(above).([]int32), any(line).([]int32), any(below).([]int32))
	case []float32:
		relaxFloat(to, any(above).([]float32), any(line).([]float32), any(below).([]float32))
	}
}

// relaxInt rounds down, as upstream does.
func relaxInt(to, above, line, below []int32) {
	for j := 1; j < len(line)-1; j++ {
		to[j] = (line[j-1] + line[j+1] + above[j] + below[j]) >> 2
	}
}

func relaxFloat(to, above, line, below []float32) {
	for j := 1; j < len(line)-1; j++ {
		to[j] = (line[j-1] + line[j+1] + above[j] + below[j]) * 0.25
	}
}
