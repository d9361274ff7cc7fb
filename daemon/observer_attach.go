package daemon

import (
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/attach"
)

// attachLimits are the limiters of the programs that attach to one rank, or to none.
type attachLimits struct {
	mu     sync.Mutex
	events [attach.NumEventKinds]limiter
}

var attachText = [attach.NumEventKinds]string{
	attach.EventAttached: "program attached",
	attach.EventDetached: "program detached",
	attach.EventRefused:  "program refused",
	attach.EventFailed:   "program connection not accepted",
}

func attachLevel(kind attach.EventKind) zapcore.Level {
	if kind == attach.EventFailed {
		return zapcore.WarnLevel
	}
	return zapcore.InfoLevel
}

// Program logs an event of a program. A client can cause any number of them, so each kind
// gets at most one line a second for each rank.
func (o *Observer) Program(e attach.Event) {
	limits := &o.attach[len(o.attach)-1]
	if e.Rank >= 0 {
		limits = &o.attach[e.Rank]
	}
	limits.mu.Lock()
	suppressed, ok := limits.events[e.Kind].take(o.now())
	limits.mu.Unlock()
	if ok {
		o.queue(&line{kind: lineAttach, rank: e.Rank, program: e, suppressed: suppressed})
	}
}

// writeProgram logs the line of an event.
func (o *Observer) writeProgram(ln *line) {
	e := &ln.program
	var fields []zap.Field
	if e.Rank >= 0 {
		fields = append(fields, zap.Int("rank", e.Rank), zap.Int("pid", e.PID), zap.Int("uid", e.UID))
	}
	if e.Err != nil {
		fields = append(fields, zap.String("reason", e.Err.Error()))
	}
	o.log.Log(attachLevel(e.Kind), attachText[e.Kind], append(fields, suppressedField(ln.suppressed))...)
}

// flushPrograms logs how many events were suppressed and have not occurred since.
func (o *Observer) flushPrograms() {
	for rank := range o.attach {
		limits := &o.attach[rank]
		limits.mu.Lock()
		for kind := range limits.events {
			n := limits.events[kind].rest(o.now())
			if n == 0 {
				continue
			}
			of := zap.Skip()
			if rank < len(o.attach)-1 {
				of = zap.Int("rank", rank)
			}
			o.log.Log(attachLevel(attach.EventKind(kind)), attachText[kind], of, suppressedField(n))
		}
		limits.mu.Unlock()
	}
}

// suppressedField returns the number of suppressed lines as a field.
func suppressedField(n uint64) zap.Field {
	if n == 0 {
		return zap.Skip()
	}
	return zap.Uint64("suppressed", n)
}
