package collcheck

import "github.com/zrlmpi/zrlmpid/mpe/coll"

// Program is the complete schedule of one rank. Steps[i−1] is step number i.
type Program struct {
	Steps           []coll.Step
	Scratch, Window int
	InOrder         bool
}

// Programs returns the schedules of all ranks.
func Programs(a *coll.Algorithm, calls []coll.Call) ([]Program, error) {
	programs := make([]Program, len(calls))
	for i, c := range calls {
		var schedule coll.Schedule
		if err := a.Make(&schedule, &c); err != nil {
			return nil, err
		}
		p := &programs[i]
		for step, ok := schedule.Next(); ok; step, ok = schedule.Next() {
			p.Steps = append(p.Steps, *step)
		}
		p.Scratch, p.Window, p.InOrder = schedule.Scratch, schedule.Window, schedule.InOrder
	}
	return programs, nil
}

// access is a step's access to a range of bytes.
type access struct {
	loc   coll.Loc
	n     int
	write bool
}

// accesses returns the accesses of a step, at most two. Unused elements are zero.
func accesses(step *coll.Step) (list [2]access) {
	switch step.Kind {
	case coll.StepSend:
		list[0] = access{step.From, step.Len, false}
	case coll.StepRecv, coll.StepForward:
		list[0] = access{step.Into, step.Len, true}
	case coll.StepPack: // gaps count as read, which can cause only false alarms
		reads, writes := step.Extents()
		list = [2]access{{step.From, reads, false}, {step.Into, writes, true}}
	case coll.StepCopy, coll.StepReduce:
		list = [2]access{{step.From, step.Len, false}, {step.Into, step.Len, true}}
	case coll.StepReduceRight:
		list = [2]access{{step.From, step.Len, true}, {step.Into, step.Len, true}}
	}
	return list
}
