package collective

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// Ranks that choose different algorithms for the same call wait for each other forever.
// So before their first call in a communicator, its members find out whether all go by
// the same configuration, and what they exchange messages through. If they do not, all
// go by the default table. Communicators with deployed nodes have nothing to agree on:
// these do as upstream's compiler has made them.

// agreement is what the members of a communicator have agreed on.
type agreement struct {
	comm uint32
	done bool
	// freed: no further call is made.
	freed bool
	// class is what all of their messages go through.
	class choice.Class
	// same: all of them are configured alike.
	same  bool
	table *choice.Table
	// orders has the order of ordered broadcasts, by the rank of their root in the world.
	orders map[int]*Ordering
	// call is the one by which they agree, until it has ended; waiting are those that
	// were posted before.
	call    *Execution
	waiting []*Execution
	// epoch distinguishes the communicator from others of the same number; 0 if not all
	// members know of epochs. members are their ranks of the world, last is the number of
	// the call that was made last. aborts are those of calls that were not made here yet,
	// and unsentAborts this rank's, which are sent once more when there is an epoch.
	epoch        uint64
	members      []int
	last         int
	aborts       []abortMsg
	unsentAborts []abortMsg
	// sharing is nil if the members have no slot in common for their shared buffers.
	sharing *sharing
}

// agreementTag is that of the messages by which the members agree. Calls have other tags,
// and there is one agreement of a communicator. The messages wait for a receive, so that a
// program that is gone before the members have agreed leaves none.
const agreementTag = 0

// What the members agree on is the bitwise AND of what each of them has: flags, a hash
// of 32 bits each of the configuration and of the built-in table, which may be another one
// in another version, and the complement of both. Between the flags the first member has the
// epoch, and the others ones; so it is 0 if a member knows of no epochs. The flag of
// oversubscribed hosts counts as a bit of the epoch: it is one in versions without the flag. The last 64 bits are the
// slots of the shared buffers that are free.
const (
	agreementLen       = 32
	flagMemory         = 1
	flagOversubscribed = 1 << 63
	epochShift         = 1
	slotsAt            = 24
)

// agreeAndBegin begins a call, or has it wait until the members have agreed. The error is
// that of a call that cannot be.
func (e *Executor) agreeAndBegin(x *Execution) error {
	if x.limits.ByOrder || x.Call.Ranks == 1 {
		if e.alone == nil {
			e.alone = &agreement{class: choice.Memory, same: true, table: e.table()}
		}
		if f := e.byOrder.begin(x); f != nil {
			x.agreed = e.alone
			x.endAborted(f)
			return nil
		}
		return x.begin(e.alone)
	}
	a := e.agreements[x.Comm]
	if b := e.engine.Shared(); b != nil && x.User == nil {
		_, x.Call.Shared = b.Slots() // if the members agree on a slot
	}
	if a == nil || !a.done { // else begin detects the errors before anything is sent
		if err := x.CheckAlgorithm(); err != nil {
			return err
		}
	}
	if a == nil {
		a = &agreement{comm: x.Comm, members: slices.Clone(x.Members)}
		e.agreements[x.Comm] = a
		e.agree(a, x)
	}
	number := x.Tag
	if a.done {
		if err := x.begin(a); err != nil {
			return err
		}
	} else {
		a.waiting = append(a.waiting, x)
	}
	a.last = number
	return nil
}

// agree begins the call by which the members of a communicator agree. No member sends a
// message of another call before all have made this one, and none makes it twice. So those that
// have come in the communicator are of an earlier program, which had the same numbers.
func (e *Executor) agree(a *agreement, first *Execution) {
	e.engine.Discard(first.Comm)
	x := new(Execution)
	x.e = e
	x.Operation = Operation{
		Call:    coll.Call{Collective: coll.Allreduce, Rank: first.Call.Rank, Ranks: first.Call.Ranks, Bytes: agreementLen, Elem: 8, InPlace: true},
		Members: first.Members, Comm: first.Comm, Tag: agreementTag, Op: op.BAnd, Type: op.Uint64,
		Recv: e.offer(first),
	}
	all := x.Recv
	if binary.LittleEndian.Uint64(all[slotsAt:]) != 0 {
		e.offered = a
	}
	x.then = func(err error) { e.haveAgreed(a, all, err) }
	x.reduce, _ = op.Lookup(x.Op, x.Type)
	x.algorithm, _ = coll.Find(coll.Allreduce, "recursive-doubling")
	if err := x.algorithm.Make(&x.schedule, &x.Call); err != nil { // it can be, whenever the first call can
		e.haveAgreed(a, nil, err)
		return
	}
	a.call = x
	x.execute()
}

// offer is what this rank has to say.
func (e *Executor) offer(x *Execution) []byte {
	flags := ^uint64(0)
	if x.Call.Rank == 0 {
		flags = flagMemory | flagOversubscribed | e.newEpoch()<<epochShift
	}
	if !e.cfg.Oversubscribed {
		flags &^= flagOversubscribed
	}
	for i, rank := range x.Members {
		if w, _ := e.engine.Wire(rank); i != x.Call.Rank && !w.SingleCopy {
			flags &^= flagMemory
		}
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, agreementLen), flags)
	hash := fold(e.defaultTable().Hash())<<32 | fold(e.cfg.hash())
	b = binary.LittleEndian.AppendUint64(b, hash)
	b = binary.LittleEndian.AppendUint64(b, ^hash)
	return binary.LittleEndian.AppendUint64(b, e.freeSlots(x))
}

// fold makes 32 bits of 64.
func fold(hash uint64) uint64 { return (hash ^ hash>>32) & math.MaxUint32 }

// haveAgreed begins the calls that have waited for it.
func (e *Executor) haveAgreed(a *agreement, all []byte, err error) {
	a.done, a.call = true, nil
	if e.offered == a {
		e.offered = nil
	}
	a.class, a.table = choice.Network, e.defaultTable()
	if err == nil {
		flags := binary.LittleEndian.Uint64(all)
		a.class = choice.ClassOf(flags&flagMemory != 0, flags&flagOversubscribed != 0)
		a.epoch = flags >> epochShift
		e.takeSlot(a, binary.LittleEndian.Uint64(all[slotsAt:]))
		alike := binary.LittleEndian.Uint64(all[8:]) | binary.LittleEndian.Uint64(all[16:])
		switch {
		case alike == math.MaxUint64:
			a.same, a.table = true, e.table()
		case alike>>32 == math.MaxUint32: // the default table
			e.disagreements++
		default: // the first algorithm that can
			e.disagreements++
			a.table = nil
		}
	} else {
		delete(e.agreements, a.comm) // the next call tries again
	}
	if a.epoch != 0 {
		for i := range a.unsentAborts {
			a.unsentAborts[i].epoch = a.epoch
			e.sendAborts(a.members, &a.unsentAborts[i])
			a.skip(&a.unsentAborts[i])
		}
		// Now it is known which calls the aborts that came before are of.
		e.aborts = append(e.aborts, a.aborts...)
	}
	a.unsentAborts, a.aborts = nil, nil
	waiting := a.waiting
	a.waiting = nil
	for _, x := range waiting {
		failed := err
		if failed == nil {
			failed = x.begin(a)
		}
		if failed != nil {
			x.failed = failed
			x.end(failed)
		}
	}
	if a.freed {
		e.Free(a.comm)
	}
}

// table is the engine's own.
func (e *Executor) table() *choice.Table {
	if t := e.cfg.Table; t != nil {
		return t
	}
	return e.defaultTable()
}

// defaultTable is the one that is built in.
func (e *Executor) defaultTable() *choice.Table {
	if e.builtIn != nil {
		return e.builtIn
	}
	return choice.Default()
}

// hash is that of everything by which calls are chosen.
func (c *Config) hash() uint64 {
	h := choice.Default().Hash()
	if c.Table != nil {
		h = c.Table.Hash()
	}
	h = h*31 + uint64(c.Order)
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		if f, ok := c.Force[of]; ok {
			for _, b := range []byte(f.String()) {
				h = h*31 + uint64(b)
			}
			h = h*31 + uint64(of)
		}
	}
	return h
}
