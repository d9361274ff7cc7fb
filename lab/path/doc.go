// Package path emulates a long and lossy network path between two network namespaces of this machine. Each namespace
// has a TUN device, and one thread forwards IP packets between the two. It applies a rate, a bounded queue that drops
// packets when full, a delay, and seeded loss, reordering and duplication.
//
//	namespace A, 10.77.0.1        emulator        namespace B, 10.77.0.2
//	programs ── TUN device ── queue, rate, delay ── TUN device ── programs
//
// Direction is pure: its time is an argument, and its randomness comes from a seed. Open connects two of them with
// devices, on Linux and as root. Namespaces and devices are anonymous: they disappear with the process, however it
// exits.
package path
