// Package path emulates a long and lossy network path between two network namespaces of
// this machine. In each namespace there is a TUN device, and one thread carries the IP
// packets between the two: by a rate and a queue that drops what does not fit, a delay,
// and seeded loss, reordering and duplication.
//
//	namespace A, 10.77.0.1        emulator        namespace B, 10.77.0.2
//	programs ── TUN device ── queue, rate, delay ── TUN device ── programs
//
// Emulator is pure: it takes the time as an argument, and its randomness from a seed. Open
// connects it with devices, on Linux and as root. Namespaces and devices are anonymous:
// they end with the process, however it ends.
package path
