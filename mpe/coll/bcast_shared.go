package coll

// bcastShared is Bcast through shared buffers: the root copies the data to its shared buffer, segment by segment,
// and each other rank copies every segment from that buffer. If not all segments fit, the root overwrites the
// oldest segment when all ranks have copied it.
//
//	T = α + (n + b)·β, segments of b bytes
var bcastShared = &Algorithm{
	Name:      "shared",
	Source:    sharedSource,
	Shares:    true,
	Segmented: true,
	unsupported: func(c *Call) string {
		if c.Segment > 0 && c.Bytes/c.Segment > MaxChunks {
			return "the segments are too short"
		}
		return requireSharedOne(c)
	},
	build: func(c *Call, s *Schedule) {
		s.InOrder = true
		if c.Bytes == 0 {
			return
		}
		_, size := c.segments(c.Bytes)
		if size > c.Shared {
			size = c.Shared / 2
			size -= size % c.Elem
		}
		count, fit := (c.Bytes+size-1)/size, c.Shared/size
		if count == 1 { // avoids an allocation
			c.bcastSegment(s, chunk{count: 1, n: c.Bytes, loc: Loc{Buf: Shared}}, 1)
			return
		}
		s.rounds(count, func(i int) {
			c.bcastSegment(s, chunk{i, count, i * size, min(size, c.Bytes-i*size), Loc{Shared, i % fit * size}}, fit)
		})
	},
	cost: func(c *Call) Cost {
		_, size := c.segments(c.Bytes)
		return Cost{Rounds: 1, Bytes: c.Bytes + min(size, c.Bytes)}
	},
}

// bcastSegment adds a rank's steps for one segment. fit is the number of segments that fit into the shared buffer.
func (c *Call) bcastSegment(s *Schedule, k chunk, fit int) {
	data := Loc{RecvBuf, k.off}
	if c.Rank != c.Root {
		s.await(c.Root, k.number+1)
		s.read(c.Root, k.loc, data, k.n)
		if k.number+fit < k.count {
			s.publish()
		}
		return
	}
	s.await(AllRanks, k.number-fit+1)
	s.copy(k.loc, data, k.n)
	s.publish()
}
