// Package standin holds the kernels: what a rank that stands in for an FPGA
// computes. The engine under it keeps the FPGA's habits on the wire; a kernel
// keeps those of an FPGA's role. It does one blocking operation at a time, and
// it never gives up by itself: when an operation fails the error is logged and
// the kernel's loop starts anew, after a pause that grows with every failure in
// a row. Only its context ends it, or its work being done.
//
//   - echo sends every message from its peer back, which is also the part of an
//     FPGA in upstream's pingpong example.
//   - ring passes messages from the rank below to the rank above.
//   - sink receives and discards.
//   - source sends a pattern that a receiver can check.
//   - jacobi, kmeans, matvec and backsub are the workers of the programs of these
//     names in folder apps.
//   - exec:PROGRAM ARGS… lets a program of the user's make the calls, over the
//     MPE interface on its standard input and output. It is specified in
//     docs/mpe_interface.md.
//
// A kernel must never allocate by what the wire or a program claims: its
// buffers are bounded by its options. It must never close its rank.
package standin
