package mpemodel

// state is a state in which the MPE's state machine can wait. The functions in engine.go execute the transient states
// of the sources as steps.
type state uint8

const (
	idle state = iota
	wait4Clear
	sendData
	wait4Ack
	wait4Req
	recvStart
	recvData
	recvDone
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
