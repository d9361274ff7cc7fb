package cosim

import "fmt"

// Rule is a rule of AXI4-Stream that a role can break. The simulator reports each rule at most once per stream.
type Rule uint8

const (
	// RuleNone marks a record as a transfer.
	RuleNone Rule = iota
	// RuleKeepValid requires valid to stay 1 until ready is 1. Data is the cycle since which valid was 1.
	RuleKeepValid
	// RuleStable requires data, keep and last to stay unchanged until ready is 1. Data, Keep and Last contain the
	// changed bits.
	RuleStable
	// RuleDefined requires valid to be 0 or 1 and, while valid is 1, data, keep, last and ready to be 0 or 1 as well.
	// Data, Keep and Last contain the undefined bits. If all of them are 0, the undefined signal is valid or, on a
	// stream to the role, ready.
	RuleDefined
	// RuleIndependent requires valid not to wait for ready. Data is the cycle in which ready was set. The simulator
	// holds ready low 4 times, each time for a different number of cycles. It reports a broken rule if valid never came
	// during such a hold but always within 16 cycles of ready afterwards. A role that breaks this rule can still
	// exchange messages with an engine whose ready does not wait for valid.
	RuleIndependent
	numRules
)

// appliesTo reports whether a role can break rule r on stream k.
func (r Rule) appliesTo(k Kind) bool {
	switch k &^ KindTCP {
	case KindCall, KindOut:
		return r > RuleNone && r < numRules
	case KindIn, KindFeedback:
		return r == RuleDefined
	}
	return false
}

// findings holds those faults of a role that do not prevent it from exchanging messages.
type findings []*FaultError

// TakeFindings returns the findings recorded since the previous call.
func (f *findings) TakeFindings() []*FaultError {
	list := *f
	*f = nil
	return list
}

// brokenRule returns the fault reported by a record. context describes the current call or datagram. For
// RuleIndependent, brokenRule instead records a finding and returns nil.
func (f *findings) brokenRule(b Boundary, r Record, at uint64, context string) *FaultError {
	signal, problem := ruleProblem(b, r)
	fault := &FaultError{b.signal(r.Kind, signal), at, problem + context}
	if r.Rule == RuleIndependent {
		*f = append(*f, fault)
		return nil
	}
	return fault
}

// ruleProblem returns, for a record that reports a broken rule, the signal at fault and a description of the fault.
func ruleProblem(boundary Boundary, record Record) (signal, problem string) {
	signal = changedSignal(boundary, record)
	switch {
	case record.Rule == RuleKeepValid:
		return "tvalid", fmt.Sprintf("withdrawn before tready, after it was set since cycle %d", record.Data)
	case record.Rule == RuleIndependent:
		return "tvalid", fmt.Sprintf("set within 16 cycles of tready (cycle %d) after each of 4 holds of tready, of "+
			"61 to 1021 cycles: valid must not wait for ready", record.Data)
	case record.Rule == RuleStable:
		return signal, "changed before tready" + describeBits(boundary, record)
	case record.Kind&^KindTCP >= KindIn:
		return "tready", "neither 0 nor 1 while tvalid is 1"
	case signal == "":
		return "tvalid", "neither 0 nor 1"
	}
	return signal, "neither 0 nor 1 while tvalid is 1" + describeBits(boundary, record)
}

// changedSignal returns the first signal with a bit set in the record, or "" if no bit is set.
func changedSignal(b Boundary, record Record) string {
	isCall := !b.Network() && record.Kind == KindCall // its number is in Keep
	switch {
	case record.Data != 0 || isCall && record.Keep != 0:
		return "tdata"
	case record.Keep != 0:
		return "tkeep"
	case record.Last:
		return "tlast"
	}
	return ""
}

// describeBits describes the bits set in a record.
func describeBits(b Boundary, record Record) string {
	if !b.Network() && record.Kind == KindCall {
		switch {
		case record.Keep != 0:
			return ", in mpi_call"
		case uint32(record.Data) != 0:
			return ", in count"
		}
		return ", in rank"
	}
	switch {
	case record.Data != 0:
		return fmt.Sprintf(", in bits 0x%016x", record.Data)
	case record.Keep != 0:
		return fmt.Sprintf(", in bits 0x%02x", record.Keep)
	}
	return ""
}

// upperSignals maps the names of signals to their upper-case form, which the metadata streams use.
var upperSignals = map[string]string{"tvalid": "TVALID", "tready": "TREADY", "tdata": "TDATA", "tkeep": "TKEEP",
	"tlast": "TLAST"}

// signal returns the full name of a stream's signal. Signals of metadata streams are in upper case.
func (b Boundary) signal(k Kind, name string) string {
	if kind := k &^ KindTCP; b.Network() && (kind == KindOutMeta || kind == KindInMeta) {
		name = upperSignals[name]
	}
	return b.stream(k) + "_" + name
}
