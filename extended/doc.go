// Package extended is the state machine between one local rank and one peer that speak the extended profile: sessions,
// the numbers of packets and messages, acknowledgement and retransmissions, window and credit. It decides which packets
// to send and accept, and when to declare a peer unreachable.
//
// The package is pure. Every event comes with the time at which it happened and returns actions, which the caller
// executes in order. The package must never start a goroutine, read a clock, use randomness other than the caller's
// seed, open a socket, or match a message with a receive. It keeps payload only of packets whose predecessors are
// missing, and never allocates memory by the claims of a packet.
//
// # The caller's duties
//
// The caller feeds all packets from the peer, executes the actions of an event before it feeds the next one, and calls
// Flush after an event or a batch of events: only Flush sends packets. It calls Tick, and then Flush, no later than the
// time that Deadline returns. It matches each message that an action opens, at once or later, and calls Accept for it;
// if it matches at once, before the next Flush. It answers AskLink by LinkLimit. It keeps the payload of a send, or a
// copy, until SendDone.
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
