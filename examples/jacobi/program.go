package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// border is upstream's value of the cells at the edge.
const border = 128

// minSize leaves a cell within the border.
const minSize = 3

type program struct {
	size, iterations, lines, words int
	datatype                       config.Datatype
}

// Flags implements demo.Example.
func (p *program) Flags(f *flag.FlagSet) {
	f.IntVar(&p.size, "size", 256, "`lines` of the grid, and columns; upstream's example has 512")
	f.IntVar(&p.iterations, "iterations", 10, "how many iterations")
	f.IntVar(&p.lines, "lines", 0, "`lines` of the grid for each worker; 0: an even share")
	f.IntVar(&p.words, "words", 0, "cut lines into messages of so many `words`; 0: one message each")
	f.TextVar(&p.datatype, "datatype", config.Datatype(protocol.Int), "what cells are: int or float")
}

// Check implements demo.Example.
func (p *program) Check(ranks int) error {
	switch {
	case p.size < minSize || p.size > jacobi.MaxColumns:
		return fmt.Errorf("-size %d: %d to %d are possible", p.size, minSize, jacobi.MaxColumns)
	case p.iterations < 1 || p.iterations > 1<<20:
		return fmt.Errorf("-iterations %d: 1 to %d are possible", p.iterations, 1<<20)
	case p.words < 0:
		return fmt.Errorf("-words %d: give 1 or more, or 0 for whole lines", p.words)
	case p.lines < 0 || p.lines > jacobi.MaxColumns || p.lines > 0 && p.lines*(ranks-1) < p.size:
		return fmt.Errorf("-lines %d: %s with so many lines each do not make up a grid of %d; 0 is an even share",
			p.lines, demo.Count(ranks-1, "worker"), p.size)
	}
	return nil
}

// Run implements demo.Example.
func (p *program) Run(ctx context.Context, world *mpi.Comm) (demo.Result, error) {
	o := jacobi.Options{Columns: p.size, Lines: p.lines, Words: p.words}
	isFloat := protocol.Datatype(p.datatype) == protocol.Float
	if world.Rank() != jacobi.Root {
		if isFloat {
			return nil, jacobi.Work[float32](ctx, world, o)
		}
		return nil, jacobi.Work[int32](ctx, world, o)
	}
	r := &result{Size: p.size, Iterations: p.iterations, Datatype: protocol.Datatype(p.datatype).String(), Workers: world.Size() - 1}
	var err error
	if isFloat {
		err = compute(ctx, world, r, float32(border), o)
	} else {
		err = compute(ctx, world, r, int32(border), o)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// compute is rank 0's part, followed by the same on one processor.
func compute[T jacobi.Cell](ctx context.Context, world *mpi.Comm, r *result, edge T, o jacobi.Options) error {
	parallel, serial := jacobi.NewGrid(r.Size, edge), jacobi.NewGrid(r.Size, edge)
	start := time.Now()
	if err := jacobi.Host(ctx, world, parallel, r.Iterations, o); err != nil {
		return err
	}
	r.Parallel = demo.Millis(time.Since(start))
	start = time.Now()
	jacobi.Serial(serial, r.Iterations)
	r.Serial = demo.Millis(time.Since(start))
	for i, cell := range parallel.Cells {
		if cell != serial.Cells[i] {
			r.WrongCells++
		}
	}
	for i := 1; i <= r.Size/2; i *= 2 {
		r.Cells = append(r.Cells, cell{Line: i, Column: i, Value: float64(parallel.Line(i)[i])})
	}
	return nil
}

type result struct {
	Size       int    `json:"size"`
	Iterations int    `json:"iterations"`
	Datatype   string `json:"datatype"`
	Workers    int    `json:"workers"`
	// Parallel and Serial are what all iterations took, in milliseconds.
	Parallel float64 `json:"ms"`
	Serial   float64 `json:"serial_ms"`
	// Cells are some of the result.
	Cells []cell `json:"cells"`
	// WrongCells differ from those of the serial computation.
	WrongCells int `json:"wrong_cells"`
}

type cell struct {
	Line   int     `json:"line"`
	Column int     `json:"column"`
	Value  float64 `json:"value"`
}

// Table implements demo.Result.
func (r *result) Table(w io.Writer) {
	fmt.Fprintf(w, "%d x %d cells of %s, %s, %s\n\n LINE  COLUMN      VALUE\n",
		r.Size, r.Size, r.Datatype, demo.Count(r.Iterations, "iteration"), demo.Count(r.Workers, "worker"))
	for _, c := range r.Cells {
		fmt.Fprintf(w, "%5d  %6d %10.4g\n", c.Line, c.Column, c.Value)
	}
	fmt.Fprintf(w, "\n%.3f ms; on one processor %.3f ms; %d of %d cells differ\n", r.Parallel, r.Serial, r.WrongCells, r.Size*r.Size)
}

// Wrong implements demo.Result.
func (r *result) Wrong() string {
	if r.WrongCells == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d cells differ from the serial computation", r.WrongCells, r.Size*r.Size)
}
