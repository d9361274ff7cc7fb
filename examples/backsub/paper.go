package main

import "github.com/zrlmpi/zrlmpid/examples/internal/scaling"

var paperSizes = []int{100, 200, 300, 400, 500, 600}

// paper is the table of times of back substitution.
var paper = scaling.NewPaper("V", paperSizes, [][]float64{
	{46, 30, 20, 18, 20},
	{183, 116, 74, 63, 70},
	{414, 257, 161, 136, 151},
	{738, 454, 282, 263, 261},
	{1155, 707, 437, 364, 403},
	{1669, 1018, 627, 520, 575},
})
