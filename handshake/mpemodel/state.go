package mpemodel

// state is a state in which the MPE's state machine can wait. The functions in engine.go execute the transient states
// of the sources as steps.
type state uint8

const (
	idle state = iota
	// A send: the MPE waits for CLEAR_TO_SEND, reads the message from the wrapper, and waits for ACK.
	wait4Clear
	sendData
	wait4Ack
	// A receive: the MPE waits for SEND_REQUEST, then for a DATA header, reads the payload, and waits until the dequeuer
	// has delivered all lines.
	wait4Req
	recvStart
	recvData
	recvDone
	// drain discards the rest of a datagram up to its end, then enters the state afterDrain.
	drain
)

var stateNames = [...]string{
	idle:       "IDLE",
	wait4Clear: "WAIT4CLEAR",
	sendData:   "SEND_DATA_RD",
	wait4Ack:   "WAIT4ACK",
	wait4Req:   "WAIT4REQ",
	recvStart:  "RECV_DATA_START",
	recvData:   "RECV_DATA_RD",
	recvDone:   "RECV_DATA_WRD",
	drain:      "MPE_DRAIN_DATA_STREAM",
}

func (s state) String() string { return stateNames[s] }
