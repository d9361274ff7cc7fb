// Package handshake is the state machine of ZRLMPI between one local rank and
// one peer: what to send, what to accept and when to end it with an error, for each message
// and for the pair as a whole.
//
// It is pure. Every event comes with the time at which it happened, and is
// answered with actions that the caller carries out in order. The package must
// never start a goroutine, read a clock, draw a random number, open a socket or
// keep a payload: the same code drives live ranks, judges recorded packets and
// runs in simulations that cover hours in milliseconds.
//
// # The caller's duties
//
// A Pair holds at most one message in each direction. The caller queues further
// ones, and hands over the next when an action says that a direction is free.
// It feeds everything that arrives from the peer, in order, and calls Tick when
// the time has come that Deadline returns, with a time at which everything that
// had arrived has been fed: a packet that lies in a socket is not late. It carries
// out the actions of one event before it feeds the next. After TransmitData it
// calls DataSent.
//
// # The sender of one message
//
//	          Send                 CLEAR_TO_SEND               ACK
//	(idle) ─────────► WAIT_CLEAR ───────────────► WAIT_ACK ─────────► (done)
//	   │   SEND_REQ   │ ▲    │ ▲        DATA       │     │
//	   │         time-out:   │ │                   │     ├─ time-out: DATA again; to a
//	   │                     │ │                   │     │  deployed peer only when it asks
//	   │         SEND_REQ    │ │ peer's message    │     │  by CLEAR_TO_SEND
//	   │         again       ▼ │ is done           │     ├─ SEND_REQUEST of a deployed
//	   └───────────────────► HELD                  │     │  peer, twice: it has it
//	     a receive is        a crossing SEND_      │     └─ deadline: TimeoutError
//	     under way           REQUEST goes first    └─ ERROR: RemoteError
//
// # The receiver of one message
//
//	         Recv                 SEND_REQUEST               DATA
//	(idle) ───────► WAIT_REQUEST ──────────────► WAIT_DATA ───────► RECEIVING ─┐
//	   │                          CLEAR_TO_SEND   │ ▲    ▲            │   │    │ all bytes
//	   │                                          │ │    └────────────┘   │    │
//	   │    SEND_REQUEST was deferred      time-out or│     time-out, gap    │    ▼
//	   └──────────────────────────────►   retransmitted  │     or wrong length: │   ACK, (done)
//	             CLEAR_TO_SEND         SEND_REQUEST:│     start over       │
//	                                   CLEAR again  │                      └─ DATA again:
//	                                                └─ deadline            start over
//
// # The pair
//
//   - One message at a time: a send waits (HELD) while a receive is under way.
//     Only a SEND_REQUEST that crossed with ours goes first, and is answered if
//     a receive is posted, so that neither side waits for the other forever.
//   - One SEND_REQUEST is deferred until its receive is posted. Retransmissions
//     of it are the same message.
//   - What a deployed peer sends shows what it is in, because its calls block. A
//     CLEAR_TO_SEND or SEND_REQUEST that this belies was a late duplicate, and
//     what it brought about is canceled.
//   - DATA and ACK that come sooner than a round trip are held back, as they may be late
//     copies. Equal content is reported, and drops nothing.
//   - A datagram is payload or packet by the pair's state and the bytes still
//     expected, not by its bytes.
//
// The rules are specified, each with its source, in docs/ZRLMPI_protocol.md.
package handshake
