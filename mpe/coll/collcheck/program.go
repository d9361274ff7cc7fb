package collcheck

import "github.com/zrlmpi/zrlmpid/mpe/coll"

// Program is the whole schedule of one rank. Step number i is Steps[i−1].
type Program struct {
	Steps           []coll.Step
	Scratch, Window int
	InOrder         bool
}

// Programs returns the schedules of all ranks.
func Programs(a *coll.Algorithm, calls []coll.Call) ([]Program, error) {
	programs := make([]Program, len(calls))
	for i, c := range calls {
		var s coll.Schedule
		if err := a.Make(&s, &c); err != nil {
			return nil, err
		}
		p := &programs[i]
		for step, ok := s.Next(); ok; step, ok = s.Next() {
			p.Steps = append(p.Steps, *step)
		}
		p.Scratch, p.Window, p.InOrder = s.Scratch, s.Window, s.InOrder
	}
	return programs, nil
}

// access is a step's access to a range of bytes.
type access struct {
	loc   coll.Loc
	n     int
	write bool
}

// accesses returns the accesses of a step: none, one or two.
func accesses(s *coll.Step) (list [2]access) {
	switch s.Kind {
	case coll.StepSend:
		list[0] = access{s.From, s.Len, false}
	case coll.StepRecv, coll.StepForward:
		list[0] = access{s.Into, s.Len, true}
	case coll.StepPack: // gaps between the pieces count as read, which can only cause false alarms
		reads, writes := s.Extents()
		list = [2]access{{s.From, reads, false}, {s.Into, writes, true}}
	case coll.StepCopy, coll.StepReduce:
		list = [2]access{{s.From, s.Len, false}, {s.Into, s.Len, true}}
	case coll.StepReduceRight:
		list = [2]access{{s.From, s.Len, true}, {s.Into, s.Len, true}}
	}
	return list
}
