package mpi

// checkIntra refuses what check does, and an intercommunicator.
func (k *call) checkIntra() error {
	if err := k.check(); err != nil {
		return err
	}
	if k.comm.remote != nil {
		return k.failf(ErrComm, "%v is an intercommunicator: the call is for one with a single group", k.comm)
	}
	return nil
}
