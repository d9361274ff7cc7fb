// Package attach lets a program use a rank of a running daemon as if the rank's
// engine were in the program: a Server offers mpe.Devices on a Unix stream
// socket, and a Client that has attached to one is an mpe.Device. The bytes
// between them are specified in docs/attach.md, for programs in other
// languages.
//
// The daemon trusts no program. The server must never allocate by what a frame
// claims beyond the program's budget, never wait for a program while another
// one waits, never stop reading one because an operation of its cannot go on,
// and never keep anything of a program that has gone. It touches the wire only
// through the devices that it is given.
package attach
