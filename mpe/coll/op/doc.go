// Package op implements the reduction operations of MPI on bytes that hold numbers in wire format, least significant
// byte first.
//
// Its functions are pure: they must never keep state, allocate, or give results that depend on the location of their
// arguments in memory.
//
// # Results
//
// Each element is computed separately, as result[i] = left[i] ∘ right[i], with one rounding per operation to the
// element's type. The bits of a result therefore depend only on the order in which a schedule
// combines, and not on lengths or on the unrolling of loops. Integers wrap around. MAX and MIN of floats are Go's max
// and min: a NaN on either side gives a NaN, and −0 is less than +0. The logical operations return 1 and 0. MAXLOC and
// MINLOC take the smaller index of equal values; a NaN loses to any other value.
//
// # Vector instructions
//
// Loops in Go define the results. On amd64, if the processor has AVX2, kernels in assembly give the same bits for the
// integer and float types, and for sums of complex numbers. Registers have 256 bits: with 512 bits, a sum was 1.5 times
// as fast in the L1 cache, no faster in the L2 cache, and slower in memory. Products, MAX and MIN of 64-bit integers
// use AVX-512, because AVX2 has no instructions for them. Other architectures, such as arm64, use the loops, which
// process eight elements or 64 bits per iteration, without assembly that the project cannot run.
package op
