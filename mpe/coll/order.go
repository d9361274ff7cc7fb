package coll

import "slices"

// Status reports how much data a rank still has to send. It has two bits, like an entry of the status register in
// section 3.2.4 of the paper that bcastAtomic cites.
type Status uint8

const (
	// Free means that the rank has no data left to send.
	Free Status = iota
	// BusyBelow512, BusyBelow1024 and BusyMore mean that the rank has less than 512 bytes, less than 1024 bytes, or
	// more left to send.
	BusyBelow512
	BusyBelow1024
	BusyMore
)

// StatusOf returns the status of a rank with the given number of bytes left to send.
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

// PackStatus packs the status of each rank into two bits, beginning with the highest bits of the first byte, as the
// paper prints its status register.
func PackStatus(status []Status) []byte {
	packed := make([]byte, (len(status)+3)/4)
	for i, st := range status {
		packed[i/4] |= byte(st&3) << (6 - i%4*2)
	}
	return packed
}

// UnpackStatus is the inverse of PackStatus. If packed is too short, the remaining ranks are Free.
func UnpackStatus(packed []byte, ranks int) []Status {
	status := make([]Status, max(ranks, 0))
	for i := range status {
		if i/4 < len(packed) {
			status[i] = Status(packed[i/4]>>(6-i%4*2)) & 3
		}
	}
	return status
}

// OrderForm determines how the transmission order depends on the ranks' status.
type OrderForm uint8

const (
	// OrderFixed makes the order independent of the status.
	OrderFixed OrderForm = iota
	// OrderFreeFirst puts free ranks before busy ranks (section 3.2.1 of the paper).
	OrderFreeFirst
	// OrderByLeft also sorts busy ranks by the amount of data left (section 3.2.2 of the paper).
	OrderByLeft
)

// TransmissionOrder returns, for Call.Order, the order of ranks in a chain that begins with root. Ranks with equal keys
// remain in numerical order. All ranks of a call must pass the same status.
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

// Key returns the key by which a rank with status s is sorted. Statuses that this form of order does not distinguish
// share a key.
func (f OrderForm) Key(s Status) Status {
	switch f {
	case OrderFreeFirst:
		return min(s, BusyBelow512)
	case OrderByLeft:
		return s
	}
	return Free
}
