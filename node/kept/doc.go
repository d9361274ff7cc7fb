// Package kept keeps what a rank has to remember of the exchange with its deployed peers when its process is replaced:
// in a file that is mapped into memory, so that it costs no system call to keep something, and that the end of the
// process, by a signal as well, does not lose it. A crash of the host may lose it, so each entry records the boot of
// the host in which it was made.
//
// The file is in a private directory. It is validated before use, and each entry is bound to the address of its peer.
package kept
