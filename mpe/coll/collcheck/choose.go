package collcheck

import "github.com/zrlmpi/zrlmpid/mpe/coll"

// Choose returns the algorithm that is fastest by the formulas. Alpha is the time of a
// message, beta that of a byte, gamma that of reducing a byte, in the same unit. Calls that
// have layouts get the first algorithm that fits, as not all ranks know what the others have.
func Choose(c coll.Call, alpha, beta, gamma float64) (best *coll.Algorithm, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	var least float64
	for _, a := range coll.Algorithms(c.Collective) {
		if a.Fits(c) != nil {
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
	return best, nil // the first one can carry out every call
}
