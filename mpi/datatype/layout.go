package datatype

// layout locates the data of a type. It is a loop over a contiguous block of bytes, or over consecutive parts.
// An empty layout has no iterations.
type layout struct {
	// offset is the offset of the first iteration, and stride is the distance between iterations.
	offset, stride int64
	times          int64
	// block is the length of a contiguous block of bytes, or 0 if there are parts.
	block int64
	parts []layout
	// single is set if each part is a single block.
	single bool
	// starts holds the number of data bytes before each part, and unit is the number of data bytes per
	// iteration.
	starts []int64
	unit   int64
}

// size returns the number of data bytes.
func (l *layout) size() int64 { return l.times * l.unit }

// bytes returns the layout of one block.
func bytes(n int64) layout {
	if n == 0 {
		return layout{}
	}
	return layout{stride: n, times: 1, block: n, unit: n}
}

// at returns the layout, moved by offset.
func (l layout) at(offset int64) layout {
	l.offset += offset
	return l
}

// repeat returns n repetitions of the layout, each stride bytes after the previous one.
func (l layout) repeat(n, stride int64) layout { return l.loop(n, stride, nil) }

// loop is like repeat. part must hold the layout at offset 0, or be nil; if it is not nil, loop does not
// allocate.
func (l layout) loop(n, stride int64, part []layout) layout {
	switch {
	case n == 0 || l.times == 0:
		return layout{}
	case n == 1:
		return l
	case l.times == 1 && l.block > 0 && l.block == stride: // merge into one longer block
		l.block *= n
		l.unit, l.stride = l.block, l.block
		return l
	case l.times == 1:
		l.times, l.stride = n, stride
		return l
	case stride == l.times*l.stride: // each repetition continues the previous one
		l.times *= n
		return l
	}
	if part == nil {
		part = []layout{l.at(-l.offset)}
	}
	return layout{offset: l.offset, stride: stride, times: n, parts: part, starts: atFront, unit: l.size()}
}

// atFront is the starts slice of a layout with a single part.
var atFront = []int64{0}

// join concatenates layouts.
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

// extend merges next into a layout of blocks if next continues that layout. It reports whether it did.
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

// contiguous reports whether the data is one contiguous block, and returns the offset of the block.
func (l *layout) contiguous() (offset int64, ok bool) {
	return l.offset, l.times == 0 || l.times == 1 && l.block > 0
}
