package capi

import (
	"context"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// messageCall is a call of Message.
type messageCall uint8

const (
	noMessage messageCall = iota
	sendMessage
	recvMessage
	isendMessage
	irecvMessage
)

var messageCalls = map[string]messageCall{"Send": sendMessage, "Recv": recvMessage, "Isend": isendMessage, "Irecv": irecvMessage}

// Message is Call for the calls of messageCalls, which programs make for each message. Their arguments are parameters, and what is usual
// about them is decoded without args, which takes less time. result is where the status or the request is to be. Calls
// with anything unusual are made by Call.
func (l *Library) Message(number int, buf unsafe.Pointer, count, datatype int64, rank, tag int, communicator int64, result unsafe.Pointer) int {
	c, t := l.comms.get(l.abi.handle(kindComm, communicator)), l.types.get(l.abi.handle(kindDatatype, datatype))
	if c == nil || t == nil || uint(number) >= uint(len(l.calls)) || l.line != nil || l.phase.Load() != running || count < 0 || uintptr(buf) == l.abi.inPlace {
		return l.unusual(number, buf, count, datatype, rank, tag, communicator, result)
	}
	b := mpi.Memory(buf, count, t.Type)
	var err error
	switch call := l.calls[number].message; {
	case call == sendMessage:
		err = c.Send(context.Background(), b, l.abi.destination(rank), l.abi.sendTag(tag))
	case call == recvMessage:
		var st mpi.Status
		err = c.RecvStatus(context.Background(), b, l.abi.peer(rank), l.abi.tag(tag), &st)
		l.status(result, &st)
	case call == noMessage, result == nil:
		return l.unusual(number, buf, count, datatype, rank, tag, communicator, result)
	default:
		var r mpi.Request
		if call == isendMessage {
			r, err = c.Isend(b, l.abi.destination(rank), l.abi.sendTag(tag))
		} else {
			r, err = c.Irecv(b, l.abi.peer(rank), l.abi.tag(tag))
		}
		if err == nil {
			err = l.newRequest(result, r, false, c)
		}
	}
	if err != nil {
		return l.raise(&args{l: l, numbered: &l.calls[number], comm: c}, err)
	}
	return 0
}

// unusual makes a call of Message by Call.
func (l *Library) unusual(number int, buf unsafe.Pointer, count, datatype int64, rank, tag int, communicator int64, result unsafe.Pointer) int {
	at := func(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }
	list := [maxArgs]uint64{at(buf), uint64(count), uint64(datatype), uint64(rank), uint64(tag), uint64(communicator), at(result)}
	return l.Call(number, unsafe.Pointer(&list))
}
