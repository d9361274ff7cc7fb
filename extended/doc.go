// Package extended is the state machine between one local rank and one peer that
// speak the extended profile: sessions, the numbers of packets and messages,
// acknowledgement and retransmissions, window and credit. It says what to send, what to
// accept and when to declare a peer unreachable.
//
// It is pure. Every event comes with the time at which it happened, and is
// answered with actions that the caller carries out in order. The package must
// never start a goroutine, read a clock, draw a number that the caller has not
// seeded, open a socket or match a message with a receive; it keeps no payload
// but that of packets whose predecessors are missing, and never allocates by what a
// packet claims.
//
// # The caller's duties
//
// It feeds whatever arrives from the peer, carries out the actions of one event
// before it feeds the next, and calls Flush after one event or a batch of them:
// packets are sent by Flush only. It calls Tick, and then Flush, no later than
// the time that Deadline returns. It matches each message that an action opens,
// at once or later, and says so by Accept, before the next Flush if it matched
// at once. It answers AskLink by LinkLimit. Until SendDone it keeps the payload of a
// send, or a copy of it.
//
// # A message of ours
//
//	         DATA, eager                                all acknowledged
//	       ┌────────────────────────────► EAGER ──────────────────────────┐
//	QUEUED ┤                                                              ▼
//	       │ SEND_REQUEST            CLEAR_TO_SEND        all acknowledged
//	       └──────────────► WAIT_CLEAR ──────────► SENDING ────────────► (done)
//	                          │    │                  ▲                   ▲
//	                 Cancel │    │ ERROR too long   │ CLEAR_TO_SEND     │
//	                          ▼    └──────────────────┼───────────────────┤
//	                      WITHDRAWING ────────────────┘                   │
//	                          └───────────────────────────────────────────┘
//	                            ERROR canceled, ERROR too long
//
// # A message of the peer's
//
//	         SEND_REQUEST              Accept                 all arrived
//	       ┌──────────────► ANNOUNCED ─────────────► CLEARED ────────────► (done)
//	(turn) ┤                    └─ ERROR cancel: lost
//	       │ DATA, eager              all arrived                 Accept
//	       └──────────────► ARRIVING ────────────► (complete) ───────────► (done)
//	                            └────── Accept may come first ──────────────┘
//
// From every state but QUEUED and (complete) the end of the session leads to the
// end of the message, with an error.
//
// # Cost
//
// A packet costs the same however many messages are under way, and in a steady
// state nothing is allocated. Records of messages and packets are kept in rings,
// lists and an index of their own, and are used again.
//
// The rules are specified in section 14 of docs/ZRLMPI_protocol.md.
package extended
