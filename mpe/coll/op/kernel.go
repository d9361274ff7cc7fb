package op

// kernel is a function in assembly: result = left ∘ right for n bytes, a number of whole elements that is at least
// kernelMin. Vectors need no alignment; the rules of Func for overlapping hold.
type kernel func(result, left, right *byte, n int)

const (
	kernelMin = 32
	// kernelMax bounds the bytes of a call: the scheduler cannot preempt a goroutine in assembly, so that a longer call
	// would delay garbage collection.
	kernelMax = 256 << 10
)

// kernelTable contains the kernels for a set of vector instructions.
type kernelTable [BXor + 1][Complex128 + 1]kernel

func (table *kernelTable) lookup(o Op, t Type) kernel {
	if int(o) >= len(table) || int(t) >= len(table[o]) {
		return nil
	}
	return table[o][t]
}

// combine returns a Func that calls the kernel, and loop for vectors that are too short.
func (k kernel) combine(loop Func, size int) Func {
	return func(result, left, right []byte) {
		n := min(len(result), len(left), len(right))
		if n -= n % size; n < kernelMin {
			loop(result, left, right)
			return
		}
		for n > 0 {
			piece := n
			if n >= kernelMax+kernelMin {
				piece = kernelMax
			}
			k(&result[0], &left[0], &right[0], piece)
			result, left, right, n = result[piece:], left[piece:], right[piece:], n-piece
		}
	}
}
