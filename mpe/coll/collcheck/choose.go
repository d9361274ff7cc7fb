package collcheck

import "github.com/zrlmpi/zrlmpid/mpe/coll"

// Choose returns the algorithm that is fastest by the formulas. alpha is the time of a message, beta the time of a
// byte, and gamma the time of reducing a byte, in the same unit. Calls with layouts get the first algorithm that
// supports them, because not all ranks know the layouts of other ranks.
func Choose(c coll.Call, alpha, beta, gamma float64) (best *coll.Algorithm, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	var least float64
	for _, a := range coll.Algorithms(c.Collective) {
		if a.CheckSupport(c) != nil {
			continue
		}
		if c.Vector || c.Ranks == 1 {
			return a, nil
		}
		cost, err := a.Cost(c)
		if err != nil {
			return nil, err
		}
		if t := cost.Time(alpha, beta, gamma); best == nil || t < least {
			best, least = a, t
		}
	}
	return best, nil // the first one supports every call
}
