// Package system gathers the facts for package doctor. It queries the kernel through netlink, /proc and sockets, and
// sends ICMP echo requests and ARP probes. It never sends a datagram to a rank, because an FPGA must not receive
// unsolicited datagrams. The package does all of its work on the thread of the calling goroutine, and therefore in the
// network namespace of that thread.
package system
