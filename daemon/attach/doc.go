// Package attach lets programs use a rank of the daemon as if the rank's engine ran in the program: a Server offers
// mpe.Devices on a Unix stream socket to the clients of package mpe/attach, and to programs in other languages.
// Package mpe/attach/wire defines the bytes between them.
//
// The daemon trusts no program. The server must never allocate by a frame's claims beyond the program's budget, never
// make one program wait for another, never stop reading from a program because an operation of it is blocked, and
// never keep anything of a program that is gone. It accesses the network only through the devices that it is given.
package attach
