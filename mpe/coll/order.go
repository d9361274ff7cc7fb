package coll

import "slices"

// Status is what a rank reports of the data that it has still to send: two bits, as in
// the status register of the source (see bcastAtomic), 3.2.4.
type Status uint8

const (
	// Free: nothing is left.
	Free Status = iota
	// BusyBelow512, BusyBelow1024 and BusyMore: so many bytes are left.
	BusyBelow512
	BusyBelow1024
	BusyMore
)

// StatusOf is the status of a rank that has so many bytes left to send.
func StatusOf(left int) Status {
	switch {
	case left <= 0:
		return Free
	case left < 512:
		return BusyBelow512
	case left < 1024:
		return BusyBelow1024
	}
	return BusyMore
}

// PackStatus puts the status of each rank into two bits, rank 0 into the highest of the
// first byte: as the source writes its register down.
func PackStatus(status []Status) []byte {
	packed := make([]byte, (len(status)+3)/4)
	for i, st := range status {
		packed[i/4] |= byte(st&3) << (6 - i%4*2)
	}
	return packed
}

// UnpackStatus is the reverse. Ranks for which there are no bits are Free.
func UnpackStatus(packed []byte, ranks int) []Status {
	status := make([]Status, max(ranks, 0))
	for i := range status {
		if i/4 < len(packed) {
			status[i] = Status(packed[i/4]>>(6-i%4*2)) & 3
		}
	}
	return status
}

// OrderForm is how the transmission order changes with the status of ranks.
type OrderForm uint8

const (
	// OrderFixed: it does not.
	OrderFixed OrderForm = iota
	// OrderFreeFirst: free ranks before busy ones (3.2.1).
	OrderFreeFirst
	// OrderByLeft: busy ranks by what they have left, too (3.2.2).
	OrderByLeft
)

// TransmissionOrder is the order of ranks in a chain from root on, a Call.Order. Equal
// ranks are in numerical order. All ranks of a call must use the same status.
func TransmissionOrder(root int, status []Status, form OrderForm) []int {
	order := make([]int, 0, len(status))
	if root < 0 || root >= len(status) {
		return order
	}
	order = append(order, root)
	for r := range status {
		if r != root {
			order = append(order, r)
		}
	}
	slices.SortStableFunc(order[1:], func(a, b int) int { return int(form.Key(status[a])) - int(form.Key(status[b])) })
	return order
}

// Key is what a rank is sorted by: the status of another one that it is as good as.
func (f OrderForm) Key(s Status) Status {
	switch f {
	case OrderFreeFirst:
		return min(s, BusyBelow512)
	case OrderByLeft:
		return s
	}
	return Free
}
