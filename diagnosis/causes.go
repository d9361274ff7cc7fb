package diagnosis

import "github.com/zrlmpi/zrlmpid/diagnosis/infer"

// Cause is a reason why ranks wait.
type Cause struct {
	ID string
	// Title is the cause in a noun phrase.
	Title string
	// find finds it in the states of the pair of a wait, and returns false if it is not there. It is nil for the causes
	// that follow from the graph of all waits.
	find func(v *view, e *edge) (proof, bool)
}

// proof is what shows a cause.
type proof struct {
	// why is the cause in words: the end of the sentence.
	why string
	// evidence are facts, step is what to do.
	evidence []string
	step     string
	// certain: a cause at the end of the graph that the state of its rank shows.
	certain bool
	// others are the causes that are left besides, unless there is none.
	others []Possibility
	// rank is the rank at fault if it is not the one that is waited for.
	rank *int
}

// The IDs of the causes.
const (
	Stopped         = "process_stopped"
	ProcessEnded    = "process_ended"
	NotAttached     = "no_program"
	WrongProfile    = "wrong_profile"
	WrongAddress    = "wrong_address"
	DeadEnd         = "fpga_dead_end"
	MTU             = "path_mtu"
	NetworkError    = "network_error"
	TLS             = string(infer.TLS)
	NeverHeard      = "never_heard"
	Blocked         = "packets_blocked"
	Datatype        = "int_against_float"
	Tag             = "tag_mismatch"
	Communicator    = "communicator_mismatch"
	CallOrder       = "call_order"
	Root            = "root_mismatch"
	Count           = "count_mismatch"
	LostPacket      = "lost_packet"
	LostAck         = "lost_ack"
	Silent          = "peer_silent"
	Cycle           = "cycle"
	KernelFailed    = "kernel_failed"
	KernelWaits     = "kernel_waits"
	RoleHolds       = "role_holds"
	Credit          = "credit_exhausted"
	CallFailed      = "call_failed"
	Computes        = "program_computes"
	NothingSent     = "nothing_sent"
	NoReceive       = "no_receive"
	AnySourceUnmet  = "any_source"
	StateUnknown    = "state_unknown"
	ProcessNoAnswer = "process_silent"
	// Of a rank whose state is not known, beside those above.
	WaitsElsewhere = string(infer.Waits)
	OtherCall      = string(infer.OtherCall)
	Restarted      = string(infer.Restarted)
	StartedLate    = string(infer.Started)
	PacketDropped  = string(infer.Dropped)
)

// Causes are all causes: first those that the states of a pair show for certain, in the order in
// which they are looked for, then those that follow from the graph of all waits.
var Causes = []Cause{
	{Stopped, "process stopped by a signal or a debugger", findStopped},
	{ProcessEnded, "process has ended", findEnded},
	{DeadEnd, "FPGA in a documented dead end", findDeadEnd},
	{WrongProfile, "different profiles or versions", findProfile},
	{WrongAddress, "rank at another address", findAddress},
	{MTU, "datagrams longer than the path carries", findMTU},
	{TLS, "TLS of the two ends does not fit", findTLS},
	{NetworkError, "the network refuses packets", findNetworkError},
	{Datatype, "INT against FLOAT", findDatatype},
	{CallOrder, "collective calls in different order",
		contradiction(collectiveOf,
			"make the same collective calls in the same order on all ranks of the communicator")},
	{Root, "different roots of a collective call", contradiction(rootOf, "name the same root on all ranks")},
	// Only of calls in which the vectors or blocks of all ranks have one length. A receive may have room for more than
	// what is sent, and with less it fails: neither is a reason to wait.
	{Count, "different counts", contradiction(bytesOf, "use the same count and datatype on all ranks")},
	{Communicator, "different communicators", func(v *view, e *edge) (proof, bool) { return v.findMatching(e, false) }},
	{Tag, "different tags", func(v *view, e *edge) (proof, bool) { return v.findMatching(e, true) }},

	{ID: NeverHeard, Title: "no packet was ever received from it"},
	{ID: Blocked, Title: "packets do not arrive"},
	{ID: LostAck, Title: "lost ACK"},
	{ID: LostPacket, Title: "lost packet"},
	{ID: Silent, Title: "peer does not answer any more"},
	{ID: Cycle, Title: "cycle of waits"},
	{ID: ProcessNoAnswer, Title: "process does not answer"},
	{ID: KernelFailed, Title: "kernel of a stand-in has ended"},
	{ID: RoleHolds, Title: "role of a stand-in holds its messages up"},
	{ID: NotAttached, Title: "no program is attached"},
	{ID: Credit, Title: "message credit exhausted"},
	{ID: CallFailed, Title: "its last call has failed"},
	{ID: Computes, Title: "program computes"},
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
