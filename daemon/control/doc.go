// Package control implements the server and the client of the daemon's control socket, which serves HTTP and
// JSON over a Unix socket. It provides the state of the ranks, and lets a caller ping, send and receive through
// a local rank.
//
// The paths start with /v1/:
//
//	GET  /v1/status                                     Status
//	POST /v1/ping    PingRequest                        one Trip per line, as each completes
//	POST /v1/send?from=&to=&datatype=&tag=&timeout=     the body is the message; Message
//	POST /v1/recv?from=&to=&words=&datatype=&timeout=   Message in MessageHeader; the reply's body is the message
//	GET  /v1/reports, /v1/support                       as in package query
//	POST /v1/reset   query.Request                      empty
//	POST /v1/reload                                     ReloadResult
//
// The server answers a failed request with an Error; a ping in progress reports failures in a Trip. A caller that
// disconnects cancels its operation. A message received at that moment is lost, although its sender got an ACK.
//
// The package must never open a network socket. It sends and receives only through the Ports of its Backend.
package control
