// Package attach lets programs use one of the daemon's ranks as if the rank's engine ran inside the program. A
// Server offers mpe.Devices over a Unix stream socket to clients of package mpe/attach and to programs in other
// languages. Package mpe/attach/wire defines the protocol between them.
//
// The daemon trusts no program. The server must never allocate memory beyond a program's budget because of what
// a frame claims, never make one program wait for another, never stop reading from a program because one of its
// operations is blocked, and never keep state of a program that is gone. It accesses the network only through
// the devices that it is given.
package attach
