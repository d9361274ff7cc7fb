package choice

import (
	"math"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// measured is what "zrlbench tune" has decided. The times are in lab/tune/shipped.yaml; the
// test of that package prints this file when that is replaced.
var measured = map[Class]Rows{
	OversubscribedMemory: {
		Link: Link{Alpha: 1949, Beta: 0.3949},
		Rows: []Row{
			{coll.Barrier, 4, []Span{
				{math.MaxInt, []Choice{{"toggle", 0}, {"dissemination", 0}}},
			}},
			{coll.Barrier, 8, []Span{
				{math.MaxInt, []Choice{{"toggle", 0}, {"dissemination", 0}}},
			}},
			{coll.Bcast, 4, []Span{
				{16384, []Choice{{"flat", 0}, {"binomial", 0}}},
				{40960, []Choice{{"atomic", 8192}, {"flat", 0}, {"chain", 8192}, {"scatter-allgather", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"flat", 0}, {"binomial", 0}}},
			}},
			{coll.Bcast, 8, []Span{
				{math.MaxInt, []Choice{{"flat", 0}, {"atomic", 524288}, {"binomial", 0}}},
			}},
			{coll.Reduce, 4, []Span{
				{524288, []Choice{{"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"binomial", 0}}},
			}},
			{coll.Reduce, 8, []Span{
				{131072, []Choice{{"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"binomial", 0}}},
			}},
			{coll.Allreduce, 4, []Span{
				{22528, []Choice{{"flat", 0}, {"recursive-doubling", 0}}},
				{131072, []Choice{{"rabenseifner", 0}, {"flat", 0}, {"ring", 0}, {"recursive-doubling", 0}}},
				{math.MaxInt, []Choice{{"ring", 0}, {"rabenseifner", 0}, {"flat", 0}, {"recursive-doubling", 0}}},
			}},
			{coll.Allreduce, 8, []Span{
				{180224, []Choice{{"flat", 0}, {"recursive-doubling", 0}}},
				{655360, []Choice{{"rabenseifner", 0}, {"ring", 0}, {"flat", 0}, {"recursive-doubling", 0}}},
				{math.MaxInt, []Choice{{"ring", 0}, {"rabenseifner", 0}, {"flat", 0}, {"recursive-doubling", 0}}},
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
				{32, []Choice{{"bruck", 0}, {"recursive-doubling", 0}, {"ring", 0}}},
				{960, []Choice{{"recursive-doubling", 0}, {"ring", 0}}},
				{4096, []Choice{{"ring", 0}}},
				{147456, []Choice{{"recursive-doubling", 0}, {"bruck", 0}, {"ring", 0}}},
				{math.MaxInt, []Choice{{"ring", 0}}},
			}},
			{coll.Allgather, 8, []Span{
				{288, []Choice{{"bruck", 0}, {"recursive-doubling", 0}, {"ring", 0}}},
				{math.MaxInt, []Choice{{"recursive-doubling", 0}, {"bruck", 0}, {"ring", 0}}},
			}},
			{coll.Alltoall, 4, []Span{
				{6144, []Choice{{"gather-scatter", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.Alltoall, 8, []Span{
				{3072, []Choice{{"gather-scatter", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.ReduceScatter, 4, []Span{
				{11, []Choice{{"pairwise", 0}}},
				{1216, []Choice{{"recursive-halving", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.ReduceScatter, 8, []Span{
				{math.MaxInt, []Choice{{"recursive-halving", 0}, {"pairwise", 0}}},
			}},
			{coll.Scan, 4, []Span{
				{21, []Choice{{"doubling", 0}}},
				{416, []Choice{{"chain", 0}, {"doubling", 0}}},
				{16384, []Choice{{"doubling", 0}}},
				{131072, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{1048576, []Choice{{"chain", 65536}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 524288}, {"doubling", 0}}},
			}},
			{coll.Scan, 8, []Span{
				{20480, []Choice{{"doubling", 0}}},
				{65536, []Choice{{"chain", Auto}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 65536}, {"doubling", 0}}},
			}},
			{coll.Exscan, 4, []Span{
				{3072, []Choice{{"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{1048576, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 524288}, {"doubling", 0}}},
			}},
			{coll.Exscan, 8, []Span{
				{100, []Choice{{"doubling", 0}}},
				{1024, []Choice{{"chain", 0}, {"doubling", 0}}},
				{3328, []Choice{{"chain", Auto}, {"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{65536, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 65536}, {"doubling", 0}}},
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
				{math.MaxInt, []Choice{{"chain", Auto}, {"doubling", 0}}},
			}},
			{coll.Scan, 8, []Span{
				{8, []Choice{{"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{49152, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{163840, []Choice{{"chain", Auto}, {"doubling", 0}}},
				{786432, []Choice{{"chain", 65536}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", Auto}, {"doubling", 0}}},
			}},
			{coll.Exscan, 4, []Span{
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{57344, []Choice{{"doubling", 0}}},
				{1048576, []Choice{{"chain", Auto}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 524288}, {"doubling", 0}}},
			}},
			{coll.Exscan, 8, []Span{
				{2304, []Choice{{"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{40960, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{180224, []Choice{{"chain", Auto}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 65536}, {"doubling", 0}}},
			}},
		},
	},
}
