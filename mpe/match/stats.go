package match

// Stats count since New. Reading them costs a copy.
type Stats struct {
	Posted, Unexpected QueueStats
}

// QueueStats are the counters of one queue.
type QueueStats struct {
	// FirstLevelHits and SecondLevelHits count the entries that were matched
	// (by Post, Arrive, Restore or Claim) while in that level.
	FirstLevelHits, SecondLevelHits uint64
	// Refills count the entries that moved up to the first level, Spills
	// those that a restored message pushed down.
	Refills, Spills uint64
	// MaxDepth is the greatest number of entries queued at once.
	MaxDepth int
}

// Stats returns the counters.
func (m *Matcher[R, M]) Stats() Stats {
	return Stats{Posted: m.prq.counters(), Unexpected: m.umq.counters()}
}

// counters returns the counters of a queue.
func (q *queue) counters() QueueStats {
	s := q.stats
	s.FirstLevelHits, s.SecondLevelHits = q.hits[0], q.hits[1]
	return s
}
