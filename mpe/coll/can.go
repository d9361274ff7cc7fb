package coll

// Can reports whether the algorithm can carry out a call, of which it takes for granted
// that it is valid: then it is what Fits says. It allocates nothing unless the call has
// an Order or FPGAs.
func (a *Algorithm) Can(c *Call) bool {
	return c.Collective == a.Collective && (a.fits == nil || a.fits(c) == "")
}
