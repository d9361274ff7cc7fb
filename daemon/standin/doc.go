// Package standin has the kernels: what a rank that stands in for an FPGA computes. The
// engine reproduces the FPGA's behaviour on the wire, a kernel that of an FPGA's role: it
// does one blocking operation at a time. When an operation fails, the error is logged and
// the kernel's loop restarts, after a pause that grows with consecutive failures. A kernel
// ends with its context, or when its work is complete.
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
//   - rtl:SIMULATOR ARGS… lets the FPGA's own role make the calls, in a simulator. It is
//     specified in docs/cosim.md; package cosim is the boundary.
//
// A kernel must never allocate by what the wire or a program claims: its
// buffers are bounded by its options. It must never close its rank.
package standin
