package match

// restore queues an entry at the position that its sequence number seq determines. It returns the zero Handle if
// another entry occupies that position.
func (q *queue) restore(key, seq uint64) Handle {
	older := q.youngestUpTo(seq)
	if older != 0 && q.nodeAt(older).seq == seq {
		return Handle{}
	}
	i := q.push(key, seq, q.nodeAt(older).younger)
	q.restored++
	if q.gen++; q.gen == 0 {
		q.gen = 1
	}
	q.cold(i).gen = q.gen
	return Handle{seq: seq, index: i, gen: q.gen}
}

// youngestUpTo returns the youngest entry whose sequence number is at most seq, or 0.
func (q *queue) youngestUpTo(seq uint64) uint32 {
	if seq < q.nodeAt(q.oldest()).seq {
		return 0
	}
	i := q.youngest()
	for i != 0 && q.nodeAt(i).seq > seq {
		i = q.nodeAt(i).older
	}
	return i
}

// forget clears the field gen of entry i, which is being removed, if the entry was restored.
func (q *queue) forget(i uint32) {
	if r := q.cold(i); r.gen != 0 {
		r.gen = 0
		q.restored--
	}
}
