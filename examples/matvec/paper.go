package main

import "github.com/zrlmpi/zrlmpid/examples/internal/scaling"

var paperSizes = []int{50, 100, 150, 200, 250, 300}

// paper is the table of times of matrix-vector multiplication.
var paper = scaling.NewPaper("II", paperSizes, [][]float64{
	{22, 12, 9, 7, 6},
	{88, 47, 30, 25, 23},
	{200, 106, 65, 53, 50},
	{357, 189, 118, 97, 87},
	{559, 296, 180, 148, 137},
	{806, 427, 264, 214, 196},
})
