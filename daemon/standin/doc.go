// Package standin contains the kernels of ranks that stand in for FPGAs. The engine reproduces an FPGA's
// behavior on the wire, and a kernel reproduces the behavior of an FPGA's role: it performs one blocking
// operation at a time. When an operation fails, the kernel logs the error and restarts its loop after a pause,
// which grows with consecutive failures. A kernel ends when its context ends or its work is complete.
//
//   - echo returns every message from its peer, like the FPGA in upstream's pingpong example.
//   - ring passes messages from the rank below to the rank above.
//   - sink receives messages and discards them.
//   - source sends a pattern that a receiver can check.
//   - jacobi, kmeans, matvec and backsub are the workers of the programs with these names in folder apps.
//   - exec:PROGRAM ARGS… lets a user's program make the calls, over the MPE interface on its standard input and
//     output. It is specified in docs/mpe_interface.md.
//   - rtl:SIMULATOR ARGS… lets the FPGA's own role make the calls, in a simulator. It is specified in docs/cosim.md;
//     package cosim is the boundary.
//
// A kernel must never allocate memory based on a length that a packet or program claims: its options limit its
// buffers. It must never close its rank.
package standin
