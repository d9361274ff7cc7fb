// Package handshake implements the state machine of ZRLMPI between one local rank and one peer. It decides which
// packets to send and accept, and when to end a message with an error.
//
// The package is pure. Each event method takes the time of the event and returns actions, which the caller executes in
// order. The package must never start a goroutine, read a clock, use randomness, open a socket or keep a payload,
// because the same code drives live ranks, evaluates recorded packets, and runs in simulations that cover hours in
// milliseconds.
//
// # The caller's duties
//
// A Pair handles at most one message in each direction. The caller queues further messages, and starts the next one
// when an action reports that a direction is free. It passes all packets from the peer to the Pair in order. It calls
// Tick at the time that Deadline returns, but only after it has passed all packets received up to then, because a
// packet that is waiting in a socket is not late. It executes the actions of an event before it calls the next method,
// and calls DataSent after it has executed TransmitData.
//
// # The sender of one message
//
//	          Send                 CLEAR_TO_SEND               ACK
//	(idle) ─────────► WAIT_CLEAR ───────────────► WAIT_ACK ─────────► (done)
//	   │   SEND_REQ   │ ▲    │ ▲        DATA       │     │
//	   │         timeout:    │ │                   │     ├─ timeout: DATA again; to a
//	   │                     │ │                   │     │  deployed peer only when it asks
//	   │         SEND_REQ    │ │ peer's message    │     │  by CLEAR_TO_SEND
//	   │         again       ▼ │ is done           │     ├─ SEND_REQUEST of a deployed
//	   └───────────────────► HELD                  │     │  peer, twice: it has it
//	     a receive is        a crossing SEND_      │     └─ deadline: TimeoutError
//	     in progress         REQUEST goes first    └─ ERROR: RemoteError
//
// # The receiver of one message
//
//	         Recv                 SEND_REQUEST               DATA
//	(idle) ───────► WAIT_REQUEST ──────────────► WAIT_DATA ───────► RECEIVING ─┐
//	   │                          CLEAR_TO_SEND   │ ▲    ▲            │   │    │ all bytes
//	   │                                          │ │    └────────────┘   │    │
//	   │   SEND_REQUEST was deferred    timeout   │ │    timeout, gap     │    ▼
//	   └─────────────────────────────►  or SEND_  │ │    or wrong length: │   ACK, (done)
//	           CLEAR_TO_SEND     REQUEST again:   │ │    start over       │
//	                                CLEAR again   ├─┘                     └─ DATA again:
//	                                              └─ deadline                start over
//
// # The pair
//
//   - One message at a time: a send is HELD while a receive is in progress. Only a
//     SEND_REQUEST that crossed with ours goes first, and is answered if its receive
//     is posted, so that the two sides cannot wait for each other forever.
//   - One SEND_REQUEST is deferred until its receive is posted. Retransmissions
//     of it are the same message.
//   - Packets of a deployed peer show which call it is in, because its calls block. An
//     earlier CLEAR_TO_SEND or SEND_REQUEST that contradicts them was a late duplicate,
//     and its effects are undone.
//   - DATA and ACK that come sooner than a round trip are held back, as they may be late
//     copies. Equal content is reported, but nothing is dropped for it.
//   - Whether a datagram is payload or a packet depends on the pair's state and the bytes
//     still expected, not on its content alone.
//
// The rules are specified in docs/ZRLMPI_protocol.md, each with its source.
package handshake
