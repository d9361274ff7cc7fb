package digest

// mergePairs returns the peers with a single entry for each pair of local ranks. This is the entry of the lower rank,
// to which mergePairs adds the problems that the other rank sees.
func (d *Digest) mergePairs() []Peer {
	place := make(map[pair]int, len(d.Peers))
	for i := range d.Peers {
		place[pair{d.Peers[i].Rank, d.Peers[i].Peer}] = i
	}
	list := make([]Peer, 0, len(d.Peers))
	for i := range d.Peers {
		peer := d.Peers[i]
		twin, local := place[pair{peer.Peer, peer.Rank}]
		switch {
		case local && peer.Peer < peer.Rank:
			continue
		case local:
			peer.mergeOther(&d.Peers[twin])
		}
		list = append(list, peer)
	}
	return list
}

// mergeOther adds the counts of the pair's other rank, except packets and messages: each packet sent by one rank is
// already counted as received by the other.
func (p *Peer) mergeOther(other *Peer) {
	both := *p.State
	p.Local = true
	both.Failed = max(both.Failed, other.Failed)
	both.Retransmissions += other.Retransmissions
	both.Unexpected += other.Unexpected
	both.QueuedSends += other.QueuedSends
	both.Dropped.Add(&other.Dropped)
	both.Events.Add(&other.Events)
	if both.Refuses == "" {
		both.Refuses = other.Refuses
	}
	if both.NetworkError == "" {
		both.NetworkError = other.NetworkError
	}
	p.State = &both
	p.Drops += other.Drops
	p.OldestWait = max(p.OldestWait, other.OldestWait)
	p.Rates.Retransmissions += other.Rates.Retransmissions
	p.Rates.Drops += other.Rates.Drops
}
