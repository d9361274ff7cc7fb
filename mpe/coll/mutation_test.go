package coll_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/collcheck"
)

// TestCheckerFindsMistakes checks that the checker detects the mistake in each of several schedules.
func TestCheckerFindsMistakes(t *testing.T) {
	mutations := map[string]func(s *coll.Step) bool{
		"left out": func(s *coll.Step) bool {
			was := s.Kind != coll.StepJoin
			*s = coll.Step{Kind: coll.StepJoin, After: s.After}
			return was
		},
		"one byte further in": func(s *coll.Step) bool { s.Into.Off++; return s.Into.Buf != 0 && s.Into.Buf != coll.Blank },
		"one byte further from": func(s *coll.Step) bool {
			s.From.Off++
			return s.From.Buf != 0 && s.From.Buf != coll.Blank
		},
		"longer": func(s *coll.Step) bool {
			s.Len++
			return s.Kind != coll.StepJoin && s.Kind != coll.StepCopy && s.Kind != coll.StepPublish && s.Kind != coll.StepAwait
		},
		"one publication less": func(s *coll.Step) bool { s.Count--; return s.Kind == coll.StepAwait && s.Count > 0 },
		"other peer":           func(s *coll.Step) bool { s.Peer = (s.Peer + 1) % 7; return s.Sends() || s.Receives() },
		"twice": func(s *coll.Step) bool {
			was := s.Kind == coll.StepRecv
			s.Kind = coll.StepSend
			return was
		},
		"no peer": func(s *coll.Step) bool { s.Peer = -1; return s.Sends() || s.Receives() },
		"other order": func(s *coll.Step) bool {
			was := s.Kind == coll.StepReduce
			s.Kind = coll.StepReduceRight
			return was
		},
		"waits for a later step": func(s *coll.Step) bool { s.After[2] = 1 << 20; return true },
	}
	eachAlgorithm(t, func(t *testing.T, a *coll.Algorithm) {
		c := coll.Call{Collective: a.Collective, Ranks: 7, Bytes: 14, Ordered: true, Segment: 7, FPGAs: upstreamFPGAs(7, 0),
			Flows: true, Shared: 4 * 7}
		if a.CheckSupport(c) != nil {
			c.Ordered = false
		}
		if a.CheckSupport(c) != nil {
			c.Ranks = 8
		}
		calls := eachRank(c)
		programs, err := collcheck.Programs(a, calls)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := collcheck.ProvePrograms(calls, programs); err != nil {
			t.Fatal(err)
		}
		tried := 0
		for name, mutate := range mutations {
			for r := range programs {
				for i := range programs[r].Steps {
					broken := slices.Clone(programs)
					broken[r].Steps = slices.Clone(programs[r].Steps)
					if !mutate(&broken[r].Steps[i]) {
						continue
					}
					if name == "other order" && !c.Ordered {
						continue
					}
					tried++
					_, err := collcheck.ProvePrograms(calls, broken)
					if !errors.Is(err, collcheck.ErrSchedule) {
						t.Fatalf("%s: rank %d, step %d, was %+v: %v", name, r, i+1, programs[r].Steps[i], err)
					}
				}
			}
		}
		if tried < 20 {
			t.Fatalf("only %d mistakes", tried)
		}
	})
}

// TestCheckerFindsMissingDependencies removes all dependencies of one reduction at a time, and checks that the
// checker detects it.
func TestCheckerFindsMissingDependencies(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a *coll.Algorithm) {
		c := coll.Call{Collective: a.Collective, Ranks: 8, Bytes: 16, FPGAs: upstreamFPGAs(8, 0), Flows: true, Shared: 8 * 8}
		calls := eachRank(c)
		programs, err := collcheck.Programs(a, calls)
		if err != nil {
			t.Fatal(err)
		}
		for r := range programs {
			for i, s := range programs[r].Steps {
				if s.Kind != coll.StepReduce && s.Kind != coll.StepReduceRight || a.Shares {
					continue
				}
				broken := slices.Clone(programs)
				broken[r].Steps = slices.Clone(programs[r].Steps)
				broken[r].Steps[i].After = [3]int{}
				if _, err := collcheck.ProvePrograms(calls, broken); !errors.Is(err, collcheck.ErrSchedule) {
					t.Fatalf("rank %d, step %d without its dependencies: %v", r, i+1, err)
				}
			}
		}
	})
}

// TestCheckerFindsDeadlock checks that two ranks that both send first deadlock with a window of 1, but not with a
// larger window.
func TestCheckerFindsDeadlock(t *testing.T) {
	calls := eachRank(coll.Call{Collective: coll.Barrier, Ranks: 2})
	both := func(peer, window int) collcheck.Program {
		blank := coll.Loc{Buf: coll.Blank}
		return collcheck.Program{Window: window, Steps: []coll.Step{
			{Kind: coll.StepSend, Peer: peer, From: blank}, {Kind: coll.StepRecv, Peer: peer, Into: blank},
		}}
	}
	if _, err := collcheck.ProvePrograms(calls, []collcheck.Program{both(1, 1), both(0, 1)}); !errors.Is(err,
		collcheck.ErrSchedule) {
		t.Errorf("window of 1: %v", err)
	}
	if _, err := collcheck.ProvePrograms(calls, []collcheck.Program{both(1, 2), both(0, 2)}); err != nil {
		t.Errorf("window of 2: %v", err)
	}
}
