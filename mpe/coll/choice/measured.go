package choice

import (
	"math"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// measured is what "zrlbench tune" has decided. The times are in lab/tune/shipped.yaml; the
// test of that package prints this file when that is replaced.
var measured = map[Class]Rows{
	OversubscribedMemory: {
		Link: Link{Alpha: 3858, Beta: 0.08561},
		Rows: []Row{
			{coll.Barrier, 4, []Span{
				{math.MaxInt, []Choice{{"dissemination", 0}}},
			}},
			{coll.Barrier, 8, []Span{
				{math.MaxInt, []Choice{{"toggle", 0}, {"dissemination", 0}}},
			}},
			{coll.Bcast, 4, []Span{
				{25, []Choice{{"flat", 0}, {"scatter-allgather", 0}, {"binomial", 0}}},
				{76, []Choice{{"chain", 0}, {"binomial", 0}}},
				{1048576, []Choice{{"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"atomic", 524288}, {"scatter-allgather", 0}, {"flat", 0}, {"binomial", 0}}},
			}},
			{coll.Bcast, 8, []Span{
				{math.MaxInt, []Choice{{"flat", 0}, {"atomic", 524288}, {"binomial", 0}}},
			}},
			{coll.Reduce, 4, []Span{
				{163840, []Choice{{"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"binomial", 0}}},
			}},
			{coll.Reduce, 8, []Span{
				{21, []Choice{{"binomial", 0}}},
				{360448, []Choice{{"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"rabenseifner", 0}, {"binomial", 0}}},
			}},
			{coll.Allreduce, 4, []Span{
				{32, []Choice{{"recursive-doubling", 0}}},
				{311296, []Choice{{"flat", 0}, {"recursive-doubling", 0}}},
				{math.MaxInt, []Choice{{"ring", 0}, {"rabenseifner", 0}, {"flat", 0}, {"recursive-doubling", 0}}},
			}},
			{coll.Allreduce, 8, []Span{
				{196608, []Choice{{"flat", 0}, {"recursive-doubling", 0}}},
				{589824, []Choice{{"rabenseifner", 0}, {"ring", 0}, {"flat", 0}, {"recursive-doubling", 0}}},
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
				{4864, []Choice{{"flat", 0}}},
				{32768, []Choice{{"binomial", 0}, {"flat", 0}}},
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Allgather, 4, []Span{
				{128, []Choice{{"ring", 0}}},
				{math.MaxInt, []Choice{{"recursive-doubling", 0}, {"ring", 0}}},
			}},
			{coll.Allgather, 8, []Span{
				{128, []Choice{{"recursive-doubling", 0}, {"bruck", 0}, {"ring", 0}}},
				{2816, []Choice{{"bruck", 0}, {"recursive-doubling", 0}, {"ring", 0}}},
				{math.MaxInt, []Choice{{"recursive-doubling", 0}, {"ring", 0}}},
			}},
			{coll.Alltoall, 4, []Span{
				{2048, []Choice{{"gather-scatter", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.Alltoall, 8, []Span{
				{2048, []Choice{{"gather-scatter", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.ReduceScatter, 4, []Span{
				{11264, []Choice{{"recursive-halving", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.ReduceScatter, 8, []Span{
				{17, []Choice{{"pairwise", 0}}},
				{32768, []Choice{{"recursive-halving", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.Scan, 4, []Span{
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{131072, []Choice{{"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 65536}, {"doubling", 0}}},
			}},
			{coll.Scan, 8, []Span{
				{16384, []Choice{{"doubling", 0}}},
				{65536, []Choice{{"chain", Auto}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 65536}, {"doubling", 0}}},
			}},
			{coll.Exscan, 4, []Span{
				{144, []Choice{{"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{65536, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{131072, []Choice{{"chain", Auto}, {"doubling", 0}}},
				{1048576, []Choice{{"chain", 65536}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 524288}, {"doubling", 0}}},
			}},
			{coll.Exscan, 8, []Span{
				{320, []Choice{{"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{32768, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", Auto}, {"doubling", 0}}},
			}},
		},
	},
	OversubscribedNetwork: {
		Link: Link{Alpha: 5539, Beta: 0.8103},
		Rows: []Row{
			{coll.Barrier, 4, []Span{
				{math.MaxInt, []Choice{{"toggle", 0}, {"dissemination", 0}}},
			}},
			{coll.Barrier, 8, []Span{
				{math.MaxInt, []Choice{{"toggle", 0}, {"dissemination", 0}}},
			}},
			{coll.Bcast, 4, []Span{
				{53248, []Choice{{"flat", 0}, {"atomic", 8192}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"atomic", 8192}, {"chain", 524288}, {"binomial", 0}}},
			}},
			{coll.Bcast, 8, []Span{
				{376832, []Choice{{"flat", 0}, {"binomial", 0}}},
				{655360, []Choice{{"atomic", 65536}, {"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"atomic", 8192}, {"flat", 0}, {"scatter-allgather", 0}, {"binomial", 0}}},
			}},
			{coll.Reduce, 4, []Span{
				{13, []Choice{{"binomial", 0}}},
				{128, []Choice{{"flat", 0}, {"binomial", 0}}},
				{32768, []Choice{{"binomial", 0}}},
				{163840, []Choice{{"flat", 0}, {"binomial", 0}}},
				{1572864, []Choice{{"binomial", 0}}},
				{math.MaxInt, []Choice{{"rabenseifner", 0}, {"binomial", 0}}},
			}},
			{coll.Reduce, 8, []Span{
				{1114112, []Choice{{"flat", 0}, {"binomial", 0}}},
				{math.MaxInt, []Choice{{"rabenseifner", 0}, {"binomial", 0}}},
			}},
			{coll.Allreduce, 4, []Span{
				{57344, []Choice{{"flat", 0}, {"recursive-doubling", 0}}},
				{math.MaxInt, []Choice{{"rabenseifner", 0}, {"ring", 0}, {"flat", 0}, {"recursive-doubling", 0}}},
			}},
			{coll.Allreduce, 8, []Span{
				{81920, []Choice{{"flat", 0}, {"recursive-doubling", 0}}},
				{math.MaxInt, []Choice{{"rabenseifner", 0}, {"ring", 0}, {"flat", 0}, {"recursive-doubling", 0}}},
			}},
			{coll.Gather, 4, []Span{
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Gather, 8, []Span{
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Scatter, 4, []Span{
				{16384, []Choice{{"flat", 0}}},
				{40960, []Choice{{"binomial", 0}, {"flat", 0}}},
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Scatter, 8, []Span{
				{math.MaxInt, []Choice{{"flat", 0}}},
			}},
			{coll.Allgather, 4, []Span{
				{8, []Choice{{"ring", 0}}},
				{53248, []Choice{{"bruck", 0}, {"recursive-doubling", 0}, {"ring", 0}}},
				{math.MaxInt, []Choice{{"recursive-doubling", 0}, {"ring", 0}}},
			}},
			{coll.Allgather, 8, []Span{
				{304, []Choice{{"recursive-doubling", 0}, {"bruck", 0}, {"ring", 0}}},
				{2048, []Choice{{"bruck", 0}, {"recursive-doubling", 0}, {"ring", 0}}},
				{math.MaxInt, []Choice{{"recursive-doubling", 0}, {"ring", 0}}},
			}},
			{coll.Alltoall, 4, []Span{
				{4096, []Choice{{"gather-scatter", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.Alltoall, 8, []Span{
				{4096, []Choice{{"gather-scatter", 0}, {"bruck", 0}, {"pairwise", 0}}},
				{math.MaxInt, []Choice{{"pairwise", 0}}},
			}},
			{coll.ReduceScatter, 4, []Span{
				{math.MaxInt, []Choice{{"recursive-halving", 0}, {"pairwise", 0}}},
			}},
			{coll.ReduceScatter, 8, []Span{
				{math.MaxInt, []Choice{{"recursive-halving", 0}, {"pairwise", 0}}},
			}},
			{coll.Scan, 4, []Span{
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{36864, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{294912, []Choice{{"chain", Auto}, {"doubling", 0}}},
				{1048576, []Choice{{"chain", 65536}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 524288}, {"doubling", 0}}},
			}},
			{coll.Scan, 8, []Span{
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{49152, []Choice{{"chain", 8192}, {"doubling", 0}}},
				{163840, []Choice{{"chain", Auto}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", 65536}, {"doubling", 0}}},
			}},
			{coll.Exscan, 4, []Span{
				{68, []Choice{{"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", Auto}, {"doubling", 0}}},
			}},
			{coll.Exscan, 8, []Span{
				{128, []Choice{{"doubling", 0}}},
				{16384, []Choice{{"chain", 0}, {"doubling", 0}}},
				{math.MaxInt, []Choice{{"chain", Auto}, {"doubling", 0}}},
			}},
		},
	},
}
