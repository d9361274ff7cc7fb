package coll

// bcastShared is Bcast through shared buffers: the root copies the data to its shared buffer, segment by segment, and
// each other rank copies every segment from that buffer. If not all segments fit into the buffer, the root overwrites
// the oldest segment once all ranks have copied it.
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
	build: func(call *Call, schedule *Schedule) {
		schedule.InOrder = true
		if call.Bytes == 0 {
			return
		}
		_, size := call.segments(call.Bytes)
		if size > call.Shared {
			size = call.Shared / 2
			size -= size % call.Elem
		}
		count, fit := (call.Bytes+size-1)/size, call.Shared/size
		if count == 1 { // avoids an allocation
			call.bcastSegment(schedule, chunk{count: 1, n: call.Bytes, loc: Loc{Buf: Shared}}, 1)
			return
		}
		schedule.rounds(count, func(i int) {
			call.bcastSegment(schedule, chunk{i, count, i * size, min(size, call.Bytes-i*size), Loc{Shared, i % fit * size}},
				fit)
		})
	},
	cost: func(c *Call) Cost {
		_, size := c.segments(c.Bytes)
		return Cost{Rounds: 1, Bytes: c.Bytes + min(size, c.Bytes)}
	},
}

// bcastSegment adds a rank's steps for one segment. fit is the number of segments that fit into the shared buffer.
func (c *Call) bcastSegment(schedule *Schedule, k chunk, fit int) {
	data := Loc{RecvBuf, k.off}
	if c.Rank != c.Root {
		schedule.await(c.Root, k.number+1)
		schedule.read(c.Root, k.loc, data, k.n)
		if k.number+fit < k.count {
			schedule.publish()
		}
		return
	}
	schedule.await(AllRanks, k.number-fit+1)
	schedule.copy(k.loc, data, k.n)
	schedule.publish()
}
