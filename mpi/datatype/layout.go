package datatype

// layout is where the data of a type are: a loop over a block of bytes, or over parts, which are
// copied one after another. An empty layout has no iterations.
type layout struct {
	// offset is that of the first repeat, and stride that of each further one.
	offset, stride int64
	times          int64
	// block is the length of a contiguous block of bytes, or 0 if there are parts.
	block int64
	parts []layout
	// single says that each part is one block.
	single bool
	// starts are how many bytes of data are in front of each part, and unit those of a repeat.
	starts []int64
	unit   int64
}

// size is how many bytes of data there are.
func (l *layout) size() int64 { return l.times * l.unit }

// bytes is a layout of one block.
func bytes(n int64) layout {
	if n == 0 {
		return layout{}
	}
	return layout{stride: n, times: 1, block: n, unit: n}
}

// at is the layout in another place.
func (l layout) at(offset int64) layout {
	l.offset += offset
	return l
}

// repeat is the layout n times, at a distance of stride.
func (l layout) repeat(n, stride int64) layout { return l.loop(n, stride, nil) }

// loop is repeat, where part is the layout at offset 0, or nil. With it no memory is allocated.
func (l layout) loop(n, stride int64, part []layout) layout {
	switch {
	case n == 0 || l.times == 0:
		return layout{}
	case n == 1:
		return l
	case l.times == 1 && l.block > 0 && l.block == stride: // one longer block
		l.block *= n
		l.unit, l.stride = l.block, l.block
		return l
	case l.times == 1:
		l.times, l.stride = n, stride
		return l
	case stride == l.times*l.stride: // they continue each other
		l.times *= n
		return l
	}
	if part == nil {
		part = []layout{l.at(-l.offset)}
	}
	return layout{offset: l.offset, stride: stride, times: n, parts: part, starts: atFront, unit: l.size()}
}

// atFront are the starts of a single part.
var atFront = []int64{0}

// join is one layout after another.
func join(parts []layout) layout {
	var all []layout
	for _, p := range parts {
		if p.times == 0 {
			continue
		}
		if len(all) == 0 || !all[len(all)-1].extend(&p) {
			all = append(all, p)
		}
	}
	switch len(all) {
	case 0:
		return layout{}
	case 1:
		return all[0]
	}
	l := layout{times: 1, parts: all, single: true, starts: make([]int64, len(all))}
	for i := range all {
		l.single = l.single && all[i].times == 1 && all[i].block > 0
		l.starts[i] = l.unit
		l.unit += all[i].size()
	}
	return l
}

// extend makes a layout of blocks one longer by another one that continues it.
func (l *layout) extend(next *layout) bool {
	if l.block == 0 || l.block != next.block && (l.times > 1 || next.times > 1) {
		return false
	}
	gap := next.offset - l.offset
	switch {
	case l.times == 1 && next.times == 1 && gap == l.block:
		*l = bytes(l.block + next.block).at(l.offset)
	case l.block != next.block:
		return false
	case l.times == 1 && next.times == 1:
		l.times, l.stride = 2, gap
	case l.times == 1 && gap == next.stride:
		l.times, l.stride = next.times+1, gap
	case l.times > 1 && gap == l.times*l.stride && (next.times == 1 || next.stride == l.stride):
		l.times += next.times
	default:
		return false
	}
	return true
}

// contiguous reports whether the data are one block, and where.
func (l *layout) contiguous() (offset int64, ok bool) {
	return l.offset, l.times == 0 || l.times == 1 && l.block > 0
}
