package collective

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// Ranks that chose different algorithms for the same call would wait for each other forever. Therefore the members of a
// communicator compare their configurations and their wires before their first call. If the configurations differ, all
// members use the default table. The members of communicators with deployed nodes do not agree, because upstream's
// compiler has fixed the algorithms of these nodes.

// agreement is what the members of a communicator have agreed on, or are in the process of agreeing on.
type agreement struct {
	comm uint32
	done bool
	// freed means that the program will make no further call in the communicator.
	freed bool
	// class is the class of the members' messages, on which the choice of algorithms depends.
	class choice.Class
	// sameConfig means that all members have the same configuration.
	sameConfig bool
	table      *choice.Table
	// orders maps the world rank of a root to the order that its broadcasts use.
	orders map[int]*Ordering
	// call is the internal call by which the members agree, or nil after it has ended. waiting lists the calls that
	// were posted before that.
	call    *Execution
	waiting []*Execution
	// epoch distinguishes the communicator from other communicators with the same number; it is 0 if a member does not
	// support epochs. members holds the members' world ranks. lastCall is the number of the last call made. aborts
	// holds aborts of calls that this rank has not made yet. unsentAborts holds this rank's aborts to be retransmitted
	// with the epoch.
	epoch        uint64
	members      []int
	lastCall     int
	aborts       []abortMsg
	unsentAborts []abortMsg
	// sharing describes how the members use shared buffers. It is nil if they have no slot in common.
	sharing *sharing
}

// agreementTag is the tag of the messages by which the members agree. No call uses this tag, and each communicator has
// only one agreement. The messages are synchronous sends, so that a program that ends before the members have agreed
// leaves no message behind.
const agreementTag = 0

// The members agree on the bitwise AND of their values. A value consists of four 64-bit words: flags and epoch; 32-bit
// hashes of the configuration and of the built-in table, which may differ between versions; the complement of both
// hashes; and the free slots of the shared buffers. The first member supplies the epoch between the flags, where the
// other members set all bits; a member that does not support epochs clears them. Versions without flagOversubscribed
// treat its bit as part of the epoch, and set it.
const (
	agreementLen       = 32
	flagMemory         = 1
	flagOversubscribed = 1 << 63
	epochShift         = 1
	slotsAt            = 24
)

// agreeAndBegin begins a call, or queues it until the members have agreed. It returns an error if the call is invalid.
func (e *Executor) agreeAndBegin(exec *Execution) error {
	if exec.limits.ByOrder || exec.Call.Ranks == 1 {
		if e.localAgreement == nil {
			e.localAgreement = &agreement{class: choice.Memory, sameConfig: true, table: e.table()}
		}
		if f := e.byOrder.begin(exec); f != nil {
			exec.agreed = e.localAgreement
			exec.endAborted(f)
			return nil
		}
		return exec.begin(e.localAgreement)
	}
	a := e.agreements[exec.Comm]
	if b := e.engine.Shared(); b != nil && exec.User == nil {
		_, exec.Call.Shared = b.Slots() // begin resets it if the members do not agree on a slot
	}
	if a == nil || !a.done { // otherwise begin detects errors before anything is sent
		if err := exec.CheckAlgorithm(); err != nil {
			return err
		}
	}
	if a == nil {
		a = &agreement{comm: exec.Comm, members: slices.Clone(exec.Members)}
		e.agreements[exec.Comm] = a
		e.agree(a, exec)
	}
	number := exec.Tag
	if a.done {
		if err := exec.begin(a); err != nil {
			return err
		}
	} else {
		a.waiting = append(a.waiting, exec)
	}
	a.lastCall = number
	return nil
}

// agree begins the call by which the members of a communicator agree. It first discards the messages already received
// in the communicator: they are from an earlier program that used the same numbers, because no member sends a message
// of another call before all members have made this one, and no member makes this one twice.
func (e *Executor) agree(a *agreement, first *Execution) {
	e.engine.DiscardStale(first.Comm)
	exec := new(Execution)
	exec.executor = e
	exec.Operation = Operation{
		Call: coll.Call{Collective: coll.Allreduce, Rank: first.Call.Rank, Ranks: first.Call.Ranks,
			Bytes: agreementLen, Elem: 8, InPlace: true},
		Members: first.Members, Comm: first.Comm, Tag: agreementTag, Op: op.BAnd, Type: op.Uint64,
		Recv: e.ownValue(first),
	}
	all := exec.Recv
	if binary.LittleEndian.Uint64(all[slotsAt:]) != 0 {
		e.slotOffer = a
	}
	exec.onEnd = func(err error) { e.onAgreed(a, all, err) }
	exec.reduce, _ = op.Lookup(exec.Op, exec.Type)
	exec.algorithm, _ = coll.Find(coll.Allreduce, "recursive-doubling")
	if err := exec.algorithm.Make(&exec.schedule, &exec.Call); err != nil { // cannot fail if the first call is valid
		e.onAgreed(a, nil, err)
		return
	}
	a.call = exec
	exec.execute()
}

// ownValue returns the value that this rank contributes to the agreement.
func (e *Executor) ownValue(exec *Execution) []byte {
	flags := ^uint64(0)
	if exec.Call.Rank == 0 {
		flags = flagMemory | flagOversubscribed | e.newEpoch()<<epochShift
	}
	if !e.cfg.Oversubscribed {
		flags &^= flagOversubscribed
	}
	for i, rank := range exec.Members {
		if w, _ := e.engine.Wire(rank); i != exec.Call.Rank && !w.SingleCopy {
			flags &^= flagMemory
		}
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, agreementLen), flags)
	hash := fold(e.defaultTable().Hash())<<32 | fold(e.cfg.hash())
	b = binary.LittleEndian.AppendUint64(b, hash)
	b = binary.LittleEndian.AppendUint64(b, ^hash)
	return binary.LittleEndian.AppendUint64(b, e.freeSlots(exec))
}

// fold reduces a 64-bit hash to 32 bits.
func fold(hash uint64) uint64 { return (hash ^ hash>>32) & math.MaxUint32 }

// onAgreed completes an agreement, and begins the calls that waited for it.
func (e *Executor) onAgreed(a *agreement, all []byte, err error) {
	a.done, a.call = true, nil
	if e.slotOffer == a {
		e.slotOffer = nil
	}
	a.class, a.table = choice.Network, e.defaultTable()
	if err == nil {
		flags := binary.LittleEndian.Uint64(all)
		a.class = choice.ClassOf(flags&flagMemory != 0, flags&flagOversubscribed != 0)
		a.epoch = flags >> epochShift
		e.assignSlot(a, binary.LittleEndian.Uint64(all[slotsAt:]))
		alike := binary.LittleEndian.Uint64(all[8:]) | binary.LittleEndian.Uint64(all[16:])
		switch {
		case alike == math.MaxUint64:
			a.sameConfig, a.table = true, e.table()
		case alike>>32 == math.MaxUint32: // the default table
			e.disagreements++
		default: // use the first algorithm that supports the call
			e.disagreements++
			a.table = nil
		}
	} else {
		delete(e.agreements, a.comm) // so that the next call starts a new agreement
	}
	if a.epoch != 0 {
		for i := range a.unsentAborts {
			a.unsentAborts[i].epoch = a.epoch
			e.sendAborts(a.members, &a.unsentAborts[i])
			a.countRejected(&a.unsentAborts[i])
		}
		// Only now does the epoch show which of the earlier aborts concern this communicator's calls.
		e.aborts = append(e.aborts, a.aborts...)
	}
	a.unsentAborts, a.aborts = nil, nil
	waiting := a.waiting
	a.waiting = nil
	for _, exec := range waiting {
		failed := err
		if failed == nil {
			failed = exec.begin(a)
		}
		if failed != nil {
			exec.failErr = failed
			exec.end(failed)
		}
	}
	if a.freed {
		e.Free(a.comm)
	}
}

// table returns the configured table of algorithms, or the built-in one if none is configured.
func (e *Executor) table() *choice.Table {
	if t := e.cfg.Table; t != nil {
		return t
	}
	return e.defaultTable()
}

// defaultTable returns the built-in table.
func (e *Executor) defaultTable() *choice.Table {
	if e.builtIn != nil {
		return e.builtIn
	}
	return choice.Default()
}

// hash returns a hash of the settings that affect the choice of algorithms.
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
