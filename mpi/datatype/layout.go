package datatype

// layout locates the data of a type. It is a loop over a contiguous block of bytes, or over consecutive parts.
// An empty layout has no iterations.
type layout struct {
	// offset is the offset of the first iteration, and stride is the distance between iterations.
	offset, stride int64
	iterations     int64
	// block is the length of a contiguous block of bytes, or 0 if there are parts.
	block int64
	parts []layout
	// singleBlocks is set if each part consists of a single block.
	singleBlocks bool
	// starts holds, for each part, the number of data bytes before it in an iteration. iterationSize is the number of
	// data bytes per iteration.
	starts        []int64
	iterationSize int64
}

// size returns the number of data bytes.
func (l *layout) size() int64 { return l.iterations * l.iterationSize }

// blockLayout returns the layout of one block.
func blockLayout(n int64) layout {
	if n == 0 {
		return layout{}
	}
	return layout{stride: n, iterations: 1, block: n, iterationSize: n}
}

// shifted returns the layout, moved by offset.
func (l layout) shifted(offset int64) layout {
	l.offset += offset
	return l
}

// repeat returns n repetitions of the layout, each stride bytes after the previous one.
func (l layout) repeat(n, stride int64) layout { return l.repeatWith(n, stride, nil) }

// repeatWith is like repeat. The argument part may be nil; otherwise, it must hold the layout at offset 0, which saves
// an allocation.
func (l layout) repeatWith(n, stride int64, part []layout) layout {
	switch {
	case n == 0 || l.iterations == 0:
		return layout{}
	case n == 1:
		return l
	case l.iterations == 1 && l.block > 0 && l.block == stride: // merge into one longer block
		l.block *= n
		l.iterationSize, l.stride = l.block, l.block
		return l
	case l.iterations == 1:
		l.iterations, l.stride = n, stride
		return l
	case stride == l.iterations*l.stride: // each repetition continues the previous one
		l.iterations *= n
		return l
	}
	if part == nil {
		part = []layout{l.shifted(-l.offset)}
	}
	return layout{offset: l.offset, stride: stride, iterations: n, parts: part, starts: zeroStart, iterationSize: l.size()}
}

// zeroStart is the value of the field starts in a layout with a single part.
var zeroStart = []int64{0}

// joinLayouts concatenates layouts.
func joinLayouts(parts []layout) layout {
	var all []layout
	for _, p := range parts {
		if p.iterations == 0 {
			continue
		}
		if len(all) == 0 || !all[len(all)-1].tryMerge(&p) {
			all = append(all, p)
		}
	}
	switch len(all) {
	case 0:
		return layout{}
	case 1:
		return all[0]
	}
	l := layout{iterations: 1, parts: all, singleBlocks: true, starts: make([]int64, len(all))}
	for i := range all {
		l.singleBlocks = l.singleBlocks && all[i].iterations == 1 && all[i].block > 0
		l.starts[i] = l.iterationSize
		l.iterationSize += all[i].size()
	}
	return l
}

// tryMerge merges the layout next into a layout of blocks if next continues that layout. It reports whether it did so.
func (l *layout) tryMerge(next *layout) bool {
	if l.block == 0 || l.block != next.block && (l.iterations > 1 || next.iterations > 1) {
		return false
	}
	gap := next.offset - l.offset
	switch {
	case l.iterations == 1 && next.iterations == 1 && gap == l.block:
		*l = blockLayout(l.block + next.block).shifted(l.offset)
	case l.block != next.block:
		return false
	case l.iterations == 1 && next.iterations == 1:
		l.iterations, l.stride = 2, gap
	case l.iterations == 1 && gap == next.stride:
		l.iterations, l.stride = next.iterations+1, gap
	case l.iterations > 1 && gap == l.iterations*l.stride && (next.iterations == 1 || next.stride == l.stride):
		l.iterations += next.iterations
	default:
		return false
	}
	return true
}

// contiguous reports whether the data is one contiguous block, and returns the offset of the block.
func (l *layout) contiguous() (offset int64, ok bool) {
	return l.offset, l.iterations == 0 || l.iterations == 1 && l.block > 0
}
