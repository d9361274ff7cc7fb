package coll

// Supports reports whether the algorithm supports a call that has passed Check. It does not allocate, unless the call
// sets Order or FPGAs.
func (a *Algorithm) Supports(c *Call) bool {
	return c.Collective == a.Collective && (a.unsupported == nil || a.unsupported(c) == "")
}
