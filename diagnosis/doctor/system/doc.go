// Package system gathers the facts for package doctor. It queries the kernel through netlink, /proc and sockets, and
// sends ICMP echo requests and ARP probes. It never sends a datagram to a rank: an FPGA must not receive a datagram
// that it has not asked for. The package does all of its work on the thread of the calling goroutine, and therefore in
// its network namespace.
package system
