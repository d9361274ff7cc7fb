package choice

import (
	"math"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// measured holds the decisions of "zrlbench tune" from the times in lab/tune/shipped.yaml. When the times are replaced,
// the test of that package prints the new contents of this file.
var measured = map[Class]Rows{
	OversubscribedMemory: {
		Link: Link{Alpha: 1073, Beta: 0.1089},
		Rows: []Row{
			{coll.Barrier, 4, []Span{
				{math.MaxInt, []Choice{{"shared", 0}, {"toggle", 0}, {"dissemination", 0}}},
			}},
			{coll.Barrier, 8, []Span{
				{math.MaxInt, []Choice{{"shared", 0}, {"toggle", 0}, {"dissemination", 0}}},
			}},
			{coll.Bcast, 4, []Span{
				{16384, []Choice{{"shared", 0}, {"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"shared", 32768}, {"atomic", 524288}, {"chain", 524288}, {"flat", 0},
					{"binomial", 0}}},
			}},
			{coll.Bcast, 8, []Span{
				{16384, []Choice{{"shared", 0}, {"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"shared", 32768}, {"flat", 0}, {"binomial", 0}}},
			}},
			{coll.Reduce, 4, []Span{
				{65536, []Choice{{"shared", 0}, {"shared-blocks", 0}, {"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"shared-blocks", 0}, {"shared", 0}, {"binomial", 0}}},
			}},
			{coll.Reduce, 8, []Span{
				{65536, []Choice{{"shared", 0}, {"shared-blocks", 0}, {"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"shared-blocks", 0}, {"shared", 0}, {"binomial", 0}}},
			}},
			{coll.Allreduce, 4, []Span{
				{19456, []Choice{{"shared", 0}, {"flat", 0}, {"shared-blocks", 0}, {"recursive-doubling", 0}}},
				{math.MaxInt, []Choice{{"shared-blocks", 0}, {"shared", 0}, {"rabenseifner", 0}, {"ring", 0},
					{"flat", 0}, {"recursive-doubling", 0}}},
			}},
			{coll.Allreduce, 8, []Span{
				{8192, []Choice{{"shared", 0}, {"flat", 0}, {"shared-blocks", 0}, {"recursive-doubling", 0}}},
				{math.MaxInt, []Choice{{"shared-blocks", 0}, {"rabenseifner", 0}, {"flat", 0}, {"ring", 0},
					{"shared", 0}, {"recursive-doubling", 0}}},
			}},
			{coll.Gather, 4, []Span{
				{math.MaxInt, []Choice{{"shared", 0}, {"flat", 0}}},
			}},
			{coll.Gather, 8, []Span{
				{math.MaxInt, []Choice{{"shared", 0}, {"flat", 0}}},
			}},
			{coll.Scatter, 4, []Span{
				{60, []Choice{{"flat", 0}}},
				{131072, []Choice{{"shared", 0}, {"flat", 0}}},
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Scatter, 8, []Span{
				{832, []Choice{{"flat", 0}}},
				{49152, []Choice{{"shared", 0}, {"flat", 0}}},
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Allgather, 4, []Span{
				{math.MaxInt, []Choice{{"shared", 0}, {"recursive-doubling", 0}, {"bruck", 0}, {"ring", 0}}},
			}},
			{coll.Allgather, 8, []Span{
				{math.MaxInt, []Choice{{"shared", 0}, {"recursive-doubling", 0}, {"bruck", 0}, {"ring", 0}}},
			}},
			{coll.Alltoall, 4, []Span{
				{2048, []Choice{{"shared", 0}, {"gather-scatter", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"shared", 0}, {"pairwise", 0}}},
			}},
			{coll.Alltoall, 8, []Span{
				{4096, []Choice{{"shared", 0}, {"gather-scatter", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"shared", 0}, {"pairwise", 0}}},
			}},
			{coll.ReduceScatter, 4, []Span{
				{math.MaxInt, []Choice{{"shared", 0}, {"pairwise", 0}}},
			}},
			{coll.ReduceScatter, 8, []Span{
				{88, []Choice{{"shared", 0}, {"recursive-halving", 0}, {"pairwise", 0}}},
				{160, []Choice{{"recursive-halving", 0}, {"shared", 0}, {"pairwise", 0}}},
				{77824, []Choice{{"shared", 0}, {"recursive-halving", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.Scan, 4, []Span{
				{19, []Choice{{"shared", 0}, {"chain", 0}, {"doubling", 0}}},
				{76, []Choice{{"doubling", 0}}},
				{math.MaxInt, []Choice{{"shared", 0}, {"chain", 524288}, {"doubling", 0}}},
			}},
			{coll.Scan, 8, []Span{
				{589824, []Choice{{"shared", 0}, {"chain", 65536}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 65536}, {"shared", 0}, {"doubling", 0}}},
			}},
			{coll.Exscan, 4, []Span{
				{math.MaxInt, []Choice{{"shared", 0}, {"chain", 0}, {"doubling", 0}}},
			}},
			{coll.Exscan, 8, []Span{
				{8, []Choice{{"doubling", 0}}},
				{1048576, []Choice{{"shared", 0}, {"chain", 65536}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 524288}, {"shared", 0}, {"doubling", 0}}},
			}},
		},
	},
	OversubscribedNetwork: {
		Link: Link{Alpha: 5013, Beta: 0.6853},
		Rows: []Row{
			{coll.Barrier, 4, []Span{
				{math.MaxInt, []Choice{{"toggle", 0}, {"dissemination", 0}}},
			}},
			{coll.Barrier, 8, []Span{
				{math.MaxInt, []Choice{{"toggle", 0}, {"dissemination", 0}}},
			}},
			{coll.Bcast, 4, []Span{
				{27, []Choice{{"flat", 0}, {"binomial", 0}}},
				{68, []Choice{{"binomial", 0}}},
				{432, []Choice{{"flat", 0}, {"binomial", 0}}},
				{576, []Choice{{"chain", 0}, {"atomic", 0}, {"binomial", 0}}},
				{3840, []Choice{{"binomial", 0}}},
				{524288, []Choice{{"flat", 0}, {"atomic", 65536}, {"chain", 65536}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"atomic", 8192}, {"binomial", 0}}},
			}},
			{coll.Bcast, 8, []Span{
				{278528, []Choice{{"flat", 0}, {"atomic", 65536}, {"binomial", 0}}},
				{589824, []Choice{{"binomial", 0}}},
				{math.MaxInt, []Choice{{"atomic", 65536}, {"binomial", 0}}},
			}},
			{coll.Reduce, 4, []Span{
				{524288, []Choice{{"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"binomial", 0}}},
			}},
			{coll.Reduce, 8, []Span{
				{524288, []Choice{{"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"binomial", 0}}},
			}},
			{coll.Allreduce, 4, []Span{
				{8, []Choice{{"recursive-doubling", 0}}},
				{65536, []Choice{{"flat", 0}, {"recursive-doubling", 0}}},
				{math.MaxInt, []Choice{{"rabenseifner", 0}, {"ring", 0}, {"flat", 0}, {"recursive-doubling", 0}}},
			}},
			{coll.Allreduce, 8, []Span{
				{65536, []Choice{{"flat", 0}, {"recursive-doubling", 0}}},
				{math.MaxInt, []Choice{{"rabenseifner", 0}, {"ring", 0}, {"flat", 0}, {"recursive-doubling", 0}}},
			}},
			{coll.Gather, 4, []Span{
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Gather, 8, []Span{
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Scatter, 4, []Span{
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Scatter, 8, []Span{
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Allgather, 4, []Span{
				{21, []Choice{{"recursive-doubling", 0}, {"bruck", 0}, {"ring", 0}}},
				{3072, []Choice{{"bruck", 0}, {"recursive-doubling", 0}, {"ring", 0}}},
				{math.MaxInt, []Choice{{"recursive-doubling", 0}, {"ring", 0}}},
			}},
			{coll.Allgather, 8, []Span{
				{45056, []Choice{{"bruck", 0}, {"recursive-doubling", 0}, {"ring", 0}}},
				{math.MaxInt, []Choice{{"recursive-doubling", 0}, {"bruck", 0}, {"ring", 0}}},
			}},
			{coll.Alltoall, 4, []Span{
				{8192, []Choice{{"gather-scatter", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.Alltoall, 8, []Span{
				{4096, []Choice{{"gather-scatter", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.ReduceScatter, 4, []Span{
				{16384, []Choice{{"recursive-halving", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.ReduceScatter, 8, []Span{
				{11264, []Choice{{"recursive-halving", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.Scan, 4, []Span{
				{11, []Choice{{"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{65536, []Choice{{"doubling", 0}}},
				{720896, []Choice{{"chain", 65536}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", AutoSegment}, {"doubling", 0}}},
			}},
			{coll.Scan, 8, []Span{
				{8, []Choice{{"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{49152, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{163840, []Choice{{"chain", AutoSegment}, {"doubling", 0}}},
				{786432, []Choice{{"chain", 65536}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", AutoSegment}, {"doubling", 0}}},
			}},
			{coll.Exscan, 4, []Span{
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{57344, []Choice{{"doubling", 0}}},
				{1048576, []Choice{{"chain", AutoSegment}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 524288}, {"doubling", 0}}},
			}},
			{coll.Exscan, 8, []Span{
				{2304, []Choice{{"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{40960, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{180224, []Choice{{"chain", AutoSegment}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 65536}, {"doubling", 0}}},
			}},
		},
	},
}
