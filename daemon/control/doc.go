// Package control is the daemon's control socket: HTTP and JSON over a Unix
// socket, its server and its client. It shows what the ranks are doing, and
// lends a local rank to a caller for a ping, a send or a receive.
//
// The paths start with /v1/:
//
//	GET  /v1/status                                     Status
//	POST /v1/ping    PingRequest                        one Trip a line, as they end
//	POST /v1/send?from=&to=&datatype=&tag=&timeout=     the body is the message; Message
//	POST /v1/recv?from=&to=&words=&datatype=&timeout=   Message in MessageHeader; the reply's body is the message
//	POST /v1/reset   ResetRequest                       empty
//	POST /v1/reload                                     Reloaded
//
// A failed request is answered with an Error; a ping that has begun reports its
// failure in the Trip. A caller that hangs up takes its operation back. What a
// receive took from the wire just then is lost: its sender has been told that
// the message arrived.
//
// The package must never open a network socket, and never touch the wire but
// through the ranks that its Backend lends.
package control
