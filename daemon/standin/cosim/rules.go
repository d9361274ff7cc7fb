package cosim

import "fmt"

// Rule is a rule of AXI4-Streams that a role breaks. The simulator reports each once for each stream.
type Rule uint8

const (
	// RuleNone marks a record of a transfer.
	RuleNone Rule = iota
	// RuleKeepValid: valid stays 1 until ready is. Data is the cycle since which it was 1.
	RuleKeepValid
	// RuleStable: data, keep and last do not change until ready is 1. Data, Keep and Last are the bits that did.
	RuleStable
	// RuleDefined: valid is 0 or 1, and so are data, keep and last with it, and ready while valid is 1. Data, Keep and
	// Last are the other bits; without any, it is valid, or ready of a stream to the role.
	RuleDefined
	// RuleIndependent: valid does not wait for ready. Data is the cycle in which ready was set. The simulator reports
	// it when valid came within 16 cycles of ready after 4 holds of ready, of different lengths, and never in a hold. A
	// role that breaks it exchanges messages with an engine whose ready does not wait for valid.
	RuleIndependent
	rules
)

// appliesTo reports whether a role can break the rule on a stream.
func (r Rule) appliesTo(k Kind) bool {
	switch k &^ KindTCP {
	case KindCall, KindOut:
		return r > RuleNone && r < rules
	case KindIn, KindFeedback:
		return r == RuleDefined
	}
	return false
}

// findings are the faults of a role that do not stop its exchange.
type findings []*FaultError

// Findings returns those since the last call.
func (f *findings) Findings() []*FaultError {
	list := *f
	*f = nil
	return list
}

// broken returns the fault of a record of a broken rule. context says in which call or datagram. The fault of
// RuleIndependent is a finding, and broken returns nil.
func (f *findings) broken(b Boundary, r Record, at uint64, context string) *FaultError {
	signal, problem := ruleProblem(b, r)
	fault := &FaultError{b.signal(r.Kind, signal), at, problem + context}
	if r.Rule == RuleIndependent {
		*f = append(*f, fault)
		return nil
	}
	return fault
}

// ruleProblem returns the signal of a record of a broken rule, and what is wrong with it.
func ruleProblem(b Boundary, r Record) (signal, problem string) {
	signal = changedSignal(b, r)
	switch {
	case r.Rule == RuleKeepValid:
		return "tvalid", fmt.Sprintf("withdrawn before tready, after it was set since cycle %d", r.Data)
	case r.Rule == RuleIndependent:
		return "tvalid", fmt.Sprintf("set within 16 cycles of tready (cycle %d) after each of 4 holds of tready, of 61 to 1021 cycles: valid must not wait for ready", r.Data)
	case r.Rule == RuleStable:
		return signal, "changed before tready" + bitsOf(b, r)
	case r.Kind&^KindTCP >= KindIn:
		return "tready", "neither 0 nor 1 while tvalid is 1"
	case signal == "":
		return "tvalid", "neither 0 nor 1"
	}
	return signal, "neither 0 nor 1 while tvalid is 1" + bitsOf(b, r)
}

// changedSignal returns the signal whose bits a record has, or an empty string.
func changedSignal(b Boundary, r Record) string {
	isCall := !b.Network() && r.Kind == KindCall // whose number is in Keep
	switch {
	case r.Data != 0 || isCall && r.Keep != 0:
		return "tdata"
	case r.Keep != 0:
		return "tkeep"
	case r.Last:
		return "tlast"
	}
	return ""
}

// bitsOf describes the bits of a record.
func bitsOf(b Boundary, r Record) string {
	if !b.Network() && r.Kind == KindCall {
		switch {
		case r.Keep != 0:
			return ", in mpi_call"
		case uint32(r.Data) != 0:
			return ", in count"
		}
		return ", in rank"
	}
	switch {
	case r.Data != 0:
		return fmt.Sprintf(", in bits 0x%016x", r.Data)
	case r.Keep != 0:
		return fmt.Sprintf(", in bits 0x%02x", r.Keep)
	}
	return ""
}

// upper has the names of signals of metadata.
var upper = map[string]string{"tvalid": "TVALID", "tready": "TREADY", "tdata": "TDATA", "tkeep": "TKEEP", "tlast": "TLAST"}

// signal returns the name of a signal of a stream: those of metadata are in upper case.
func (b Boundary) signal(k Kind, name string) string {
	if kind := k &^ KindTCP; b.Network() && (kind == KindOutMeta || kind == KindInMeta) {
		name = upper[name]
	}
	return b.stream(k) + "_" + name
}
