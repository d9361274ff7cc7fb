package check

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Program is the whole schedule of one rank. Step number i is Steps[i−1].
type Program struct {
	Steps           []coll.Step
	Scratch, Window int
	// Register is what the schedule has of it: its content, at the root.
	Register []byte
}

// Programs makes the schedules of all ranks.
func Programs(a *coll.Algorithm, calls []coll.Call) ([]Program, error) {
	programs := make([]Program, len(calls))
	schedules := make([]*coll.Schedule, len(calls))
	for i, c := range calls {
		s, err := a.Schedule(c)
		if err != nil {
			return nil, err
		}
		schedules[i] = s
	}
	// What ranks learn while they run is known here: the root's register.
	root := calls[0].Root
	var order []int
	if form := calls[0].Form; form != coll.OrderFixed && calls[0].Collective == coll.Bcast {
		status := make([]coll.Status, len(calls))
		copy(status, calls[root].Status)
		order = coll.TransmissionOrder(root, status, form)
	}
	for i, s := range schedules {
		p := &programs[i]
		for step, ok := s.Next(); ok; step, ok = s.Next() {
			if step.Kind == coll.StepLearn {
				s.Learn(schedules[root].Register)
			}
			if step.Kind == coll.StepRecv && step.Peer == coll.AnyRank {
				if at := slices.Index(order, i); at > 0 {
					step.Peer = order[at-1]
				}
			}
			p.Steps = append(p.Steps, step)
		}
		p.Scratch, p.Window, p.Register = s.Scratch, s.Window, s.Register
	}
	return programs, nil
}

// access is what a step does to some bytes.
type access struct {
	at    coll.Loc
	n     int
	write bool
}

// accesses gives those of a step: none, one or two.
func accesses(s *coll.Step) (list [2]access) {
	switch s.Kind {
	case coll.StepSend, coll.StepLearn:
		list[0] = access{s.From, s.Len, false}
	case coll.StepRecv, coll.StepForward:
		list[0] = access{s.Into, s.Len, true}
	case coll.StepCopy, coll.StepReduce:
		list = [2]access{{s.From, s.Len, false}, {s.Into, s.Len, true}}
	case coll.StepReduceRight:
		list = [2]access{{s.From, s.Len, true}, {s.Into, s.Len, true}}
	}
	return list
}
