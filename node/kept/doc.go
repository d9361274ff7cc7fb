// Package kept keeps what a rank has to remember of the exchange with its deployed peers when its process is replaced:
// in a file that is mapped into memory, so that it costs no system call to keep something, and that the end of the
// process, by a signal as well, does not lose it. A crash of the host may lose it, so the file says of each entry in
// which boot of the host it was made.
//
// The file is in a private directory. It is checked before it is used, and each entry is bound to the address of its
// peer.
package kept
