package coll

// Supports reports whether the algorithm supports a call that has passed Check. It allocates nothing unless the call
// has an Order or FPGAs.
func (a *Algorithm) Supports(c *Call) bool {
	return c.Collective == a.Collective && (a.unsupported == nil || a.unsupported(c) == "")
}
