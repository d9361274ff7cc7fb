package bench

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

const (
	// busyBytes is the length of the data that rank 1 still has to send to rank 2 when a call begins. Sending it takes
	// longer than a broadcast of short data.
	busyBytes = 1 << 20
	// methodParts is the number of parts into which the calls of a step are divided. Each part runs all broadcast
	// methods in turn.
	methodParts = 10
	// stampRanks is the number of blocks that can be distinguished by their stamps: one block from each of 8 ranks to
	// each of 8 ranks.
	stampRanks = 64
)

// Tags of auxiliary messages.
const (
	tagReady = iota + 1
	tagBusy
	tagTimes
	tagGo
)

// operation is a collective operation of MPI.
type operation struct {
	name string
	// sendBlocks and recvBlocks return the number of blocks in the send buffer and in the receive buffer of a rank.
	sendBlocks, recvBlocks func(ranks int) int
	// contributes reports whether a rank contributes data, and getsResult whether it receives a result.
	contributes, getsResult func(rank int) bool
	// combinedBlocks returns the indices of the blocks that a reduction combines into block k of the rank's result.
	combinedBlocks func(k, rank, ranks int) []int
	call           func(*collectiveCalls, []mpi.Option) error
}

func oneBlock(int) int           { return 1 }
func blockPerRank(ranks int) int { return ranks }
func onlyRoot(rank int) bool     { return rank == 0 }
func allRanks(int) bool          { return true }

// blocksOf returns the indices of all ranks' blocks for an operation to which each rank contributes one block.
func blocksOf(_, _, ranks int) []int {
	all := make([]int, ranks)
	for r := range all {
		all[r] = r
	}
	return all
}

// operations lists the measured operations. Rank 0 is the root.
var operations = []*operation{
	{
		"bcast", oneBlock, oneBlock, onlyRoot, func(rank int) bool { return rank > 0 },
		func(int, int, int) []int { return []int{0} },
		func(c *collectiveCalls, o []mpi.Option) error { return mpi.Bcast(c.ctx, c.comm, c.recvBuf, 0, o...) },
	},
	{
		"allreduce", oneBlock, oneBlock, allRanks, allRanks, blocksOf,
		func(c *collectiveCalls, o []mpi.Option) error {
			return mpi.Allreduce(c.ctx, c.comm, c.sendBuf, c.recvBuf, mpi.Sum, o...)
		},
	},
	{
		"alltoall", blockPerRank, blockPerRank, allRanks, allRanks, func(k, rank,
			ranks int) []int {
			return []int{k*ranks + rank}
		},
		func(c *collectiveCalls, o []mpi.Option) error {
			return mpi.Alltoall(c.ctx, c.comm, c.sendBuf, c.recvBuf, o...)
		},
	},
	{
		"reduce", oneBlock, oneBlock, allRanks, onlyRoot, blocksOf,
		func(c *collectiveCalls, o []mpi.Option) error {
			return mpi.Reduce(c.ctx, c.comm, c.sendBuf, c.recvBuf, mpi.Sum, 0, o...)
		},
	},
	{
		"gather", oneBlock, blockPerRank, allRanks, onlyRoot, func(k, _, _ int) []int { return []int{k} },
		func(c *collectiveCalls, o []mpi.Option) error {
			return mpi.Gather(c.ctx, c.comm, c.sendBuf, c.recvBuf, 0, o...)
		},
	},
}

// isSynchronizing reports whether no rank completes a call before all ranks have made it. Calls can then follow each
// other without messages in between.
func (c *operation) isSynchronizing() bool { return c.contributes(1) && c.getsResult(1) }

// onlyRootReceives reports whether only rank 0 receives a result. Without synchronization, other ranks could start
// further calls before rank 0 has completed this one.
func (c *operation) onlyRootReceives() bool { return !c.getsResult(1) }

// numReceivers returns the number of ranks that receive a result.
func (c *operation) numReceivers(ranks int) int {
	n := 0
	for r := range ranks {
		if c.getsResult(r) {
			n++
		}
	}
	return n
}

// collectiveWarmup returns the number of calls before the timed calls. Long operations, which are timed only a few
// times, get fewer.
func collectiveWarmup(st step) int { return min(warmup, st.iterations) }

// collectiveStep measures an operation among the given number of ranks, while rank 1 has the given number of busy bytes
// to send to rank 2. c/collective.c is its counterpart for a single method.
//
// A measurement lasts from the first call of a contributing rank until the last rank has its result, by the clock
// shared by all processes of a machine. Before rank 0 calls, all other ranks announce that they are about to call; rank
// 1 is the last to do so. So no rank is late, and only rank 1 has other work.
//
// If every rank both contributes and receives a result, the calls follow each other, and a measurement lasts from one
// call by rank 0 to the end of its next call. On a host with fewer processors than ranks, some ranks do work before
// others get to call. If the measurement began with the call of a single rank, it would miss the work that other ranks
// had done before.
func collectiveStep(sess *session, st step, op *operation, ranks, busy int) ([]Point, error) {
	calls, err := newCollectiveCalls(sess, st, op, ranks, busy)
	if err != nil {
		return nil, err
	}
	share := (st.iterations + methodParts - 1) / methodParts
	for from, to := -collectiveWarmup(st), 0; from < st.iterations; from, to = to, min(to+share, st.iterations) {
		for m := range sess.methods {
			if err := calls.runPart(m, from, to); err != nil {
				return nil, fmt.Errorf("by %q: %w", sess.methods[m].String(), err)
			}
		}
	}
	points := make([]Point, len(sess.methods))
	for m := range points {
		if points[m], err = calls.collectPoint(m); err != nil {
			return nil, err
		}
	}
	return points, nil
}

// collectiveCalls holds the state of one rank while it runs the collective operations of a step.
type collectiveCalls struct {
	*session
	step
	op          *operation
	rank, ranks int
	// words is the length of a block, in words.
	words int
	// done is the number of completed rounds.
	done int
	// sendBuf and recvBuf hold the blocks of the operation; a broadcast uses only recvBuf. busyData is the data that
	// rank 1 sends to rank 2 at the same time, or empty.
	sendBuf, recvBuf, busyData []int32
	// parts lists, for each received block, the blocks that are combined into it.
	parts [][]int
	// starts and ends hold, for each method, the times at which this rank began each operation and had its result.
	starts, ends [][]int64
}

func newCollectiveCalls(sess *session, st step, op *operation, ranks, busy int) (*collectiveCalls, error) {
	words, err := wordsOf(st.n)
	if err != nil {
		return nil, err
	}
	if n := sess.comm.Size(); n != ranks {
		return nil, fmt.Errorf("there are %d ranks instead of %d", n, ranks)
	}
	calls := &collectiveCalls{
		session: sess, step: st, op: op, rank: sess.comm.Rank(), ranks: ranks, words: words,
		sendBuf: make([]int32, op.sendBlocks(ranks)*words), recvBuf: make([]int32, op.recvBlocks(ranks)*words),
		busyData: make([]int32, busy/wordLen),
		starts:   make([][]int64, len(sess.methods)), ends: make([][]int64, len(sess.methods)),
	}
	if op.name == "bcast" {
		calls.sendBuf = calls.recvBuf
	}
	for k := range op.sendBlocks(ranks) {
		fill(calls.block(calls.sendBuf, k), calls.blockIndex(k))
	}
	for k := range op.recvBlocks(ranks) {
		calls.parts = append(calls.parts, op.combinedBlocks(k, calls.rank, ranks))
	}
	if calls.rank == 1 {
		fill(calls.busyData, 1)
	}
	return calls, nil
}

func (c *collectiveCalls) block(all []int32, k int) []int32 { return all[k*c.words : (k+1)*c.words] }

// blockIndex returns the index of this rank's block k if the blocks of all ranks are numbered consecutively.
func (c *collectiveCalls) blockIndex(k int) int {
	if c.op.sendBlocks(c.ranks) == 1 {
		return c.rank
	}
	return c.rank*c.ranks + k
}

// runPart makes the calls numbered from to to-1, all with the same broadcast method.
func (c *collectiveCalls) runPart(method, from, to int) error {
	defer c.account(method)()
	m := &c.methods[method]
	options := c.selectMethod(m)
	all := collectiveWarmup(c.step) + c.iterations
	for i := from; i < to; i++ {
		c.printProgress(c.n, c.done, len(c.methods)*all)
		c.done++
		// The number is unique to this operation.
		start, end, err := c.runRound(options, i*len(c.methods)+method, i == from && from < 0 || i == c.iterations-1)
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		if i >= 0 {
			c.starts[method] = append(c.starts[method], int64(start))
			c.ends[method] = append(c.ends[method], int64(end))
		}
	}
	return nil
}

// selectMethod selects the broadcast method for the operations that follow, and returns the call options for it.
func (c *collectiveCalls) selectMethod(m *method) []mpi.Option {
	if c.order != nil {
		c.order.form = m.order.Form()
	}
	return m.options()
}

// stampWord returns the word written at the start and at the end of a block in operation i.
func (c *collectiveCalls) stampWord(i, block int) int32 { return int32(i*stampRanks + block) }

// runRound executes operation i, and returns the times at which it began and ended.
func (c *collectiveCalls) runRound(options []mpi.Option, i int, all bool) (start, end time.Duration, err error) {
	start = sharedNow()
	if c.op.name != "bcast" || c.rank == 0 {
		for k := range c.op.sendBlocks(c.ranks) {
			writeStamp(c.block(c.sendBuf, k), c.stampWord(i, c.blockIndex(k)))
		}
	}
	var own *mpi.Request
	if !c.op.isSynchronizing() {
		if own, err = c.synchronize(i); err != nil {
			return 0, 0, err
		}
		start = sharedNow()
	}
	if err := c.op.call(c, options); err != nil {
		return 0, 0, err
	}
	end = sharedNow()
	if own != nil {
		if _, err := own.Wait(c.ctx); err != nil {
			return 0, 0, err
		}
		if c.rank == 2 {
			if err := verify(c.busyData, stampWord(i, 1), 1, all); err != nil {
				return 0, 0, fmt.Errorf("the data of rank 1: %w", err)
			}
			c.verified++
		}
	}
	return start, end, c.verifyResult(i, all)
}

// verifyResult verifies this rank's result: either all words, or the first and the last word of each block.
func (c *collectiveCalls) verifyResult(i int, all bool) error {
	if !c.op.getsResult(c.rank) {
		return nil
	}
	for k, parts := range c.parts {
		block, last := c.block(c.recvBuf, k), c.words-1
		var stamped int32
		for _, b := range parts {
			stamped += c.stampWord(i, b)
		}
		for w := 0; w < c.words; w++ {
			want := stamped
			switch {
			case w > 0 && w < last && !all:
				w = last
			case w > 0 && w < last:
				want = 0
				for _, b := range parts {
					want += pattern(w, b)
				}
			}
			if err := expectWord(block, w, want); err != nil {
				return fmt.Errorf("block %d: %w", k, err)
			}
		}
	}
	c.verified++
	return nil
}

// synchronize waits until this rank may make call number i. By then, rank 1 has started to send the data that keeps it
// busy, and rank 2 is ready to receive that data.
func (c *collectiveCalls) synchronize(i int) (own *mpi.Request, err error) {
	if c.op.onlyRootReceives() {
		if err := c.awaitRoot(); err != nil {
			return nil, err
		}
	}
	switch {
	case c.rank == 0:
		_, err := c.session.recvNumber(1, tagReady)
		return nil, err
	case c.rank > 1:
		if c.rank == 2 && len(c.busyData) > 0 {
			r, err := mpi.Irecv(c.comm, c.busyData, 1, tagBusy)
			if err != nil {
				return nil, err
			}
			own = &r
		}
		return own, c.session.sendNumber(0, 1, tagReady)
	}
	for r := 2; r < c.ranks; r++ {
		if _, err := c.session.recvNumber(r, tagReady); err != nil {
			return nil, err
		}
	}
	if err := c.session.sendNumber(0, 0, tagReady); err != nil || len(c.busyData) == 0 {
		return nil, err
	}
	writeStamp(c.busyData, stampWord(i, 1))
	r, err := mpi.Isend(c.comm, c.busyData, 2, tagBusy)
	return &r, err
}

// awaitRoot delays all ranks until rank 0 has completed the previous call.
func (c *collectiveCalls) awaitRoot() error {
	if c.rank > 0 {
		_, err := c.session.recvNumber(0, tagGo)
		return err
	}
	for r := 1; r < c.ranks; r++ {
		if err := c.session.sendNumber(0, r, tagGo); err != nil {
			return err
		}
	}
	return nil
}

// collectPoint returns the measured point of a method. It runs on rank 0, which collects the times from all other
// ranks.
func (c *collectiveCalls) collectPoint(method int) (Point, error) {
	starts, ends := c.starts[method], c.ends[method]
	if c.rank > 0 {
		switch {
		case c.op.isSynchronizing():
			return Point{}, nil
		case c.op.contributes(c.rank):
			return Point{}, mpi.Send(c.ctx, c.comm, starts, 0, tagTimes)
		}
		return Point{}, mpi.Send(c.ctx, c.comm, ends, 0, tagTimes)
	}
	if !c.op.getsResult(0) {
		clear(ends)
	}
	times := make([]int64, len(starts))
	for r := 1; r < c.ranks && !c.op.isSynchronizing(); r++ {
		if _, err := mpi.Recv(c.ctx, c.comm, times, r, tagTimes); err != nil {
			return Point{}, err
		}
		for i, t := range times {
			if c.op.contributes(r) {
				starts[i] = min(starts[i], t)
			} else {
				ends[i] = max(ends[i], t)
			}
		}
	}
	took := make([]time.Duration, len(starts))
	for i := range took {
		took[i] = time.Duration(ends[i] - starts[i])
	}
	return newPoint(c.step, took), nil
}
