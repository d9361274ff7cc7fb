package op

// pair consists of a value and its index, laid out as in C. Operations ignore the padding.
type pair[T scalar] struct {
	value T
	index int32
}

func locationFunc[T scalar](o Op) Func {
	switch o {
	case MaxLoc:
		return elementwise(greatestAt[T])
	case MinLoc:
		return elementwise(leastAt[T])
	}
	return nil
}

// greatestAt implements MaxLoc. Of equal values, the lower index is the result, as MPI requires. A number takes
// precedence over NaN.
func greatestAt[T scalar](result, left, right []pair[T]) {
	for i, x := range left[:len(result)] {
		y := right[i]
		if x.value > y.value || y.value != y.value && x.value == x.value ||
			equalOrNaN(x.value, y.value) && x.index < y.index {
			y = x
		}
		result[i].value, result[i].index = y.value, y.index
	}
}

// leastAt implements MinLoc, with the same rules.
func leastAt[T scalar](result, left, right []pair[T]) {
	for i, x := range left[:len(result)] {
		y := right[i]
		if x.value < y.value || y.value != y.value && x.value == x.value ||
			equalOrNaN(x.value, y.value) && x.index < y.index {
			y = x
		}
		result[i].value, result[i].index = y.value, y.index
	}
}

// equalOrNaN reports whether two values are equal, or both are NaN.
func equalOrNaN[T scalar](x, y T) bool { return x == y || x != x && y != y }
