package cpumodel

import "slices"

// datagram is a datagram in the socket.
type datagram struct {
	from int
	b    []byte
}

// socket is the receive buffer of the process's only socket.
type socket struct {
	queue   []datagram
	bytes   int
	limit   int
	dropped int
}

// enqueue drops the datagram if it does not fit, as the kernel does. The limit on the number of datagrams bounds the
// memory for empty ones.
func (s *socket) enqueue(from int, b []byte) {
	if s.bytes+len(b) > s.limit || len(s.queue) > s.limit {
		s.dropped++
		return
	}
	s.queue = append(s.queue, datagram{from, slices.Clone(b)})
	s.bytes += len(b)
}

func (s *socket) dequeue() (datagram, bool) {
	if len(s.queue) == 0 {
		return datagram{}, false
	}
	d := s.queue[0]
	s.queue = s.queue[1:]
	s.bytes -= len(d.b)
	return d, true
}
