package mpi

import "sync"

// completed holds the requests of sends that completed before their call returned, until the program waits for them. It
// uses one bit per request, because a program may have millions of such requests. They share a core, and the generation
// in a handle is the number of its request.
type completed struct {
	core       core
	mu         sync.Mutex
	lastNumber uint64 // number of the newest request
	// pages holds the bits, indexed by the upper bits of the numbers. newest is the page of lastNumber.
	pages  map[uint64]*completedPage
	newest *completedPage
}

const (
	completedBits = 12
	completedMask = 1<<completedBits - 1
)

// completedPage holds one bit per number, set until the program waits for the request.
type completedPage struct {
	bits    [(completedMask + 1) / 64]uint64
	bitsSet int
}

// add returns a completed request.
func (q *completed) add() Request {
	q.mu.Lock()
	q.lastNumber++
	if q.newest == nil || q.lastNumber&completedMask == 0 {
		q.newest = new(completedPage)
		if q.pages == nil {
			q.pages, q.core.completed = map[uint64]*completedPage{}, q
		}
		q.pages[q.lastNumber>>completedBits] = q.newest
	}
	i := q.lastNumber & completedMask
	q.newest.bits[i/64] |= 1 << (i % 64)
	q.newest.bitsSet++
	number := q.lastNumber
	q.mu.Unlock()
	return Request{&q.core, number}
}

// pageOf returns the page of a number, or nil if the page has been deleted. The caller must hold the lock.
func (q *completed) pageOf(number uint64) *completedPage {
	if number>>completedBits == q.lastNumber>>completedBits {
		return q.newest
	}
	return q.pages[number>>completedBits]
}

// contains reports whether a request has not been waited for yet.
func (q *completed) contains(number uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, i := q.pageOf(number), number&completedMask
	return p != nil && p.bits[i/64]>>(i%64)&1 != 0
}

// remove removes a request, whose handles become stale.
func (q *completed) remove(number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, i := q.pageOf(number), number&completedMask
	if p == nil || p.bits[i/64]>>(i%64)&1 == 0 {
		return
	}
	p.bits[i/64] &^= 1 << (i % 64)
	if p.bitsSet--; p.bitsSet == 0 && p != q.newest {
		delete(q.pages, number>>completedBits)
	}
}
