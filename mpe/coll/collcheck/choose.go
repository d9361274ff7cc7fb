package collcheck

import "github.com/zrlmpi/zrlmpid/mpe/coll"

// Choose returns the algorithm that is fastest by the formulas. alpha is the time of a message, beta the time of a
// byte, and gamma the time of reducing a byte, in the same unit. Calls with layouts get the first algorithm that
// supports them, because not all ranks know the layouts of other ranks.
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
