// Package system gathers the facts of package doctor: it asks the kernel by netlink, /proc and sockets, and sends ICMP
// echo
// requests. It never sends a datagram to a rank: an FPGA must get none for which it has not asked. All of it
// happens on the calling goroutine's thread, so in its network namespace.
package system
