// Package extended implements the state machine between one local rank and one peer that speak the extended profile. It
// manages sessions, packet and message numbers, acknowledgements, retransmissions, window and credit. It decides which
// packets to send and accept, and when to declare a peer unreachable.
//
// The package is pure. Each event method takes the time of the event and returns actions, which the caller executes in
// order. The package must never start a goroutine, read a clock, use randomness other than the caller's seed, open a
// socket, or match a message with a receive. It buffers the payload of a packet only while earlier packets are missing,
// and never allocates an amount of memory that a packet merely claims to need.
//
// # The caller's duties
//
// The caller passes every packet from the peer to the Conn, executes the actions of an event before it passes the next
// one, and calls Flush after an event or a batch of events. Packets are sent only by Flush. The caller calls Tick, and
// then Flush, no later than the time that Deadline returns. It matches each message that an action opens with a
// receive, and then calls Accept for it; if a receive is already posted, it does so before the next Flush. It answers
// AskLink by calling LinkLimit. It keeps the payload of a send, or a copy of it, until SendDone.
//
// # A message of ours
//
//	         DATA, eager                                all acknowledged
//	       ┌────────────────────────────► EAGER ──────────────────────────┐
//	QUEUED ┤                                                              ▼
//	       │ SEND_REQUEST            CLEAR_TO_SEND        all acknowledged
//	       └──────────────► WAIT_CLEAR ──────────► SENDING ────────────► (done)
//	                          │    │                  ▲                   ▲
//	                   Cancel │    │ ERROR too long   │ CLEAR_TO_SEND     │
//	                          ▼    └──────────────────┼───────────────────┤
//	                      WITHDRAWING ────────────────┘                   │
//	                          └───────────────────────────────────────────┘
//	                            ERROR canceled, ERROR too long
//
// # A message of the peer
//
//	         SEND_REQUEST              Accept                 all received
//	       ┌──────────────► ANNOUNCED ─────────────► CLEARED ────────────► (done)
//	(next) ┤                    └─ ERROR cancel: lost
//	       │ DATA, eager              all received                Accept
//	       └──────────────► ARRIVING ────────────► (complete) ───────────► (done)
//	                            └────── Accept may come first ──────────────┘
//
// From every state but QUEUED and (complete), the end of the session ends the message with an error.
//
// # Cost
//
// The cost of a packet does not depend on the number of messages in progress, and in a steady state nothing is
// allocated. Records of messages and packets are kept in rings, lists and a separate index, and are reused.
//
// The rules are specified in section 14 of docs/ZRLMPI_protocol.md.
package extended
