package diagnosis

import "github.com/zrlmpi/zrlmpid/diagnosis/infer"

// Cause is a reason why ranks wait.
type Cause struct {
	ID string
	// Title describes the cause as a noun phrase.
	Title string
	// find searches the states of the two ranks of a wait for the cause. It returns false if they do not prove it. It
	// is nil for causes that follow from the graph of all waits.
	find func(v *view, e *edge) (proof, bool)
}

// proof explains a wait by a cause.
type proof struct {
	// reason describes the cause in words that end the finding's sentence.
	reason string
	// evidence lists the facts that show the cause. step is the next step for the user.
	evidence []string
	step     string
	// certain is set if the cause is at the end of a chain of waits and the state of its rank proves it.
	certain bool
	// alternatives lists the other causes that remain possible.
	alternatives []Possibility
	// rank is the rank at fault. Nil means the rank that is waited for.
	rank *int
}

// The IDs of the causes.
const (
	ProcessStopped   = "process_stopped"
	ProcessEnded     = "process_ended"
	NotAttached      = "no_program"
	WrongProfile     = "wrong_profile"
	WrongAddress     = "wrong_address"
	DeadEnd          = "fpga_dead_end"
	PathMTU          = "path_mtu"
	NetworkError     = "network_error"
	TLSMismatch      = string(infer.TLSMismatch)
	NeverHeard       = "never_heard"
	PacketsBlocked   = "packets_blocked"
	DatatypeMismatch = "int_against_float"
	TagMismatch      = "tag_mismatch"
	CommMismatch     = "communicator_mismatch"
	CallOrder        = "call_order"
	RootMismatch     = "root_mismatch"
	CountMismatch    = "count_mismatch"
	LostPacket       = "lost_packet"
	LostAck          = "lost_ack"
	PeerSilent       = "peer_silent"
	WaitCycle        = "cycle"
	KernelFailed     = "kernel_failed"
	KernelWaits      = "kernel_waits"
	RoleHolds        = "role_holds"
	CreditExhausted  = "credit_exhausted"
	CallFailed       = "call_failed"
	ProgramComputes  = "program_computes"
	NothingSent      = "nothing_sent"
	NoReceive        = "no_receive"
	AnySourceUnmet   = "any_source"
	StateUnknown     = "state_unknown"
	ProcessSilent    = "process_silent"
	// Causes that apply to a rank whose state is unknown, in addition to the causes above.
	WaitsElsewhere = string(infer.WaitsElsewhere)
	OtherCall      = string(infer.OtherCall)
	Restarted      = string(infer.Restarted)
	StartedLate    = string(infer.StartedLate)
	PacketDropped  = string(infer.PacketDropped)
)

// Causes lists all causes: first the causes that the states of a pair prove, in the order in which they are tried, then
// the causes that follow from the graph of all waits.
var Causes = []Cause{
	{ProcessStopped, "process stopped by a signal or a debugger", findStopped},
	{ProcessEnded, "process has exited", findEnded},
	{DeadEnd, "FPGA in a documented dead end", findDeadEnd},
	{WrongProfile, "different profiles or versions", findProfile},
	{WrongAddress, "rank at another address", findAddress},
	{PathMTU, "datagrams longer than the path carries", findMTU},
	{TLSMismatch, "TLS of the two ends does not fit", findTLS},
	{NetworkError, "the network refuses packets", findNetworkError},
	{DatatypeMismatch, "INT against FLOAT", findDatatype},
	{CallOrder, "collective calls in different order",
		findContradiction(collectiveOf,
			"make the same collective calls in the same order on all ranks of the communicator")},
	{RootMismatch, "different roots of a collective call", findContradiction(rootOf, "name the same root on all ranks")},
	// This cause applies only to calls in which the vectors or blocks of all ranks must be equally long. In other
	// calls, a receive buffer may be larger than the message, and a smaller one makes the receive fail; neither makes a
	// rank wait.
	{CountMismatch, "different counts", findContradiction(bytesOf, "use the same count and datatype on all ranks")},
	{CommMismatch, "different communicators", func(v *view, e *edge) (proof, bool) { return v.findMismatch(e, false) }},
	{TagMismatch, "different tags", func(v *view, e *edge) (proof, bool) { return v.findMismatch(e, true) }},

	{ID: NeverHeard, Title: "no packet was ever received from it"},
	{ID: PacketsBlocked, Title: "packets do not arrive"},
	{ID: LostAck, Title: "lost ACK"},
	{ID: LostPacket, Title: "lost packet"},
	{ID: PeerSilent, Title: "peer does not answer any more"},
	{ID: WaitCycle, Title: "cycle of waits"},
	{ID: ProcessSilent, Title: "process does not answer"},
	{ID: KernelFailed, Title: "kernel of a stand-in is no longer running"},
	{ID: RoleHolds, Title: "role of a stand-in holds its messages up"},
	{ID: NotAttached, Title: "no program is attached"},
	{ID: CreditExhausted, Title: "message credit exhausted"},
	{ID: CallFailed, Title: "its last call has failed"},
	{ID: ProgramComputes, Title: "program computes"},
	{ID: KernelWaits, Title: "kernel waits for work"},
	{ID: NothingSent, Title: "nothing comes from it"},
	{ID: NoReceive, Title: "has posted no receive"},
	{ID: AnySourceUnmet, Title: "no rank has sent"},
	{ID: WaitsElsewhere, Title: "waits in another call"},
	{ID: OtherCall, Title: "has made another call"},
	{ID: Restarted, Title: "began again"},
	{ID: PacketDropped, Title: "dropped by its receiver"},
	{ID: StartedLate, Title: "was started too late"},
	{ID: StateUnknown, Title: "state is not known"},
}
