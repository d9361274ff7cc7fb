// Package path emulates a long and lossy network path between two network namespaces of this machine. Each namespace
// has a TUN device, and one thread forwards IP packets between the two devices. It applies a rate, a bounded queue
// that drops packets when full, a delay, and seeded loss, reordering and duplication.
//
//	namespace A, 10.77.0.1        emulator        namespace B, 10.77.0.2
//	programs ── TUN device ── queue, rate, delay ── TUN device ── programs
//
// Direction is pure: time is an argument, and its randomness comes from a seed. Open connects two Directions with the
// devices. It works on Linux and as root. Namespaces and devices have no names: they disappear when the process exits
// for whatever reason.
package path
