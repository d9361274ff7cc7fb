// Package kept preserves the state of a rank's exchange with its deployed peers when the rank's process is replaced.
// The state is in a file mapped into memory, so an update needs no system call, and survives the end of the process,
// even by a signal. A crash of the host may lose updates, so each entry records the boot of the host in which it was
// written.
//
// The file is in a private directory. It is validated before use, and each entry is bound to the address of its peer.
package kept
