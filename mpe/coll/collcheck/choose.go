package collcheck

import "github.com/zrlmpi/zrlmpid/mpe/coll"

// Choose returns the fastest algorithm for a call according to the formulas. alpha is the time per message, beta the
// time per byte, and gamma the time of reducing a byte, in the same unit. For a call with layouts, it returns the first
// algorithm that supports the call, because ranks do not know all layouts.
func Choose(call coll.Call, alpha, beta, gamma float64) (best *coll.Algorithm, err error) {
	if err := call.Check(); err != nil {
		return nil, err
	}
	var least float64
	for _, algorithm := range coll.Algorithms(call.Collective) {
		if algorithm.CheckSupport(call) != nil {
			continue
		}
		if call.Vector || call.Ranks == 1 {
			return algorithm, nil
		}
		cost, err := algorithm.Cost(call)
		if err != nil {
			return nil, err
		}
		if t := cost.Time(alpha, beta, gamma); best == nil || t < least {
			best, least = algorithm, t
		}
	}
	return best, nil // the first one supports every call
}
