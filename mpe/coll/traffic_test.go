package coll

// Traffic returns the number of messages and bytes that all ranks of a call send, and whether the formula of the
// algorithm's cost is only an upper bound.
func (a *Algorithm) Traffic(c Call) (messages, volume int, bound bool) {
	p, n, h := c.Ranks, c.Bytes, log2(c.Ranks)
	if a.PrepareCall(&c) != nil || p == 1 {
		return 0, 0, false
	}
	switch f := newFold(p, -1); a {
	case barrierDissemination:
		return h * p, h * p * c.Token, false
	case barrierToggle:
		return 2 * (p - 1), 2 * (p - 1) * c.Token, false
	case bcastChain, scanChain, exscanChain:
		k, _ := c.segments(n)
		return (p - 1) * k, (p - 1) * n, false
	case bcastAtomic:
		if c.eager() {
			return bcastChain.Traffic(c)
		}
	case bcastScatterAllgather:
		for v := 1; v < p; v++ {
			messages += 1 + p - subtree(v, p)
		}
		return messages, (p - 1) * n, true
	case reduceBinomial:
		if c.Ordered && c.Root != 0 {
			return p, p * n, false
		}
	case reduceRabenseifner:
		return f.group*f.steps + f.group - 1 + f.extra,
			f.group*allButOne(n, f.group) + f.steps*f.group/2*(n/f.group) + f.extra*n, false
	case allreduceDoubling:
		messages = f.group*f.steps + 2*f.extra
		return messages, messages * n, false
	case allreduceRabenseifner:
		return 2*f.group*f.steps + 2*f.extra, 2*f.group*allButOne(n, f.group) + 2*f.extra*n, false
	case allreduceRing:
		return 2 * p * (p - 1), 2 * (p - 1) * n, false
	case allreduceFlat:
		return 2 * (p - 1), 2 * (p - 1) * n, false
	case gatherFlat, scatterFlat:
		cost := a.cost(&c)
		return cost.Rounds, cost.Bytes, false
	case gatherBinomial, scatterBinomial:
		for v := 1; v < p; v++ {
			volume += subtree(v, p) * n
		}
		return p - 1, volume, false
	case gatherTree, scatterTree: // each rank's block travels the whole way
		return p - 1, (2*len(c.FPGAs) - len(c.tree().groups)) * n, false
	case allgatherBruck, allgatherDoubling:
		return p * h, p * (p - 1) * n, false
	case allgatherRing, reduceScatterPairwise:
		sum, _ := c.blockSizes(&c.Recv)
		for r := range p {
			if _, size := c.Block(&c.Recv, r); size > 0 || !c.Vector {
				messages += p - 1
			}
		}
		return messages, (p - 1) * sum, c.Vector
	case alltoallPairwise:
		return p * (p - 1), p * (p - 1) * n, false
	case alltoallGatherScatter:
		return 2 * (p - 1), 2 * (p - 1) * p * n, false
	case alltoallBruck:
		if n == 0 {
			return 0, 0, false
		}
		return p * h, p * a.cost(&c).Bytes, false
	case reduceScatterHalving:
		return c.halvingTraffic(f)
	case scanDoubling, exscanDoubling: // pairs of ranks whose distance is a power of two
		for d := 1; d < p; d *= 2 {
			messages += p - d
		}
		return messages, messages * n, a == exscanDoubling
	}
	return p - 1, (p - 1) * n, false
}

// halvingTraffic is the Traffic of reduceScatterHalving, whose halves may differ in size.
func (c *Call) halvingTraffic(f fold) (messages, volume int, bound bool) {
	count := func(times, n int) {
		if n > 0 {
			messages += times
			volume += times * n
		}
	}
	for i := range f.extra {
		count(1, c.groupBlocks(f, 0, f.group))
		_, size := c.Block(&c.Recv, 2*i)
		count(1, size)
	}
	for width := f.group; width > 1; width /= 2 {
		for lo := 0; lo < f.group; lo += width / 2 { // width/2 pairs exchange each half
			count(width/2, c.groupBlocks(f, lo, lo+width/2))
		}
	}
	return messages, volume, f.extra > 0 || c.Vector
}
