package coll

// Can reports whether the algorithm supports a call that has passed Check. It allocates nothing unless the call has
// an Order or FPGAs.
func (a *Algorithm) Can(c *Call) bool {
	return c.Collective == a.Collective && (a.fits == nil || a.fits(c) == "")
}
