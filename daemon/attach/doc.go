// Package attach lets a program use a rank of the daemon as if the rank's engine were in the program: a Server offers
// mpe.Devices on a Unix stream socket to the clients of package mpe/attach, and to programs in other languages. Package
// mpe/attach/wire has the bytes between them.
//
// The daemon trusts no program. The server must never allocate by what a frame claims beyond the program's budget, never
// wait for a program while another one waits, never stop reading one because an operation of its cannot go on, and never
// keep anything of a program that has gone. It touches the wire only through the devices that it is given.
package attach
