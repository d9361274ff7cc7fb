// Package xdp carries the datagrams of ranks between network devices and user space by AF_XDP sockets, past the
// kernel's UDP sockets. A send is one system call that hands a finished frame to the device. A receive reads shared
// memory. The kernel still decides on routes and neighbours, and this package follows its tables.
//
// On each device, a small BPF program redirects sound, unfragmented UDP datagrams to the addresses of local ranks. The
// program must never redirect other frames: the kernel handles them as before. The package must never send a frame to a
// next hop that the kernel has not resolved, retain a frame while the kernel may write to it, or leave a program
// attached when the process ends. For everything it cannot do, it reports a reason, and its caller uses the socket.
//
// Overview of the files: frame.go builds and checks frames. program_linux.go is the BPF program. ring_linux.go is one
// ring of descriptors, and pool_linux.go the frames of one receive queue. device_linux.go attaches the program to a
// device, and shares it between the ranks of the process. route_linux.go follows the kernel's tables. path_linux.go is
// the path of one rank. filter_linux.go finds rules of the packet filter, holder_linux.go who uses a device, and
// examine_linux.go what prevents a path.
package xdp
