package cosim

import "fmt"

// Rule is a rule of AXI4-Stream that a role breaks. The simulator reports each rule once for each stream.
type Rule uint8

const (
	// RuleNone marks the record of a transfer.
	RuleNone Rule = iota
	// RuleKeepValid requires that valid stays 1 until ready is 1. Data is the cycle since which it was 1.
	RuleKeepValid
	// RuleStable requires that data, keep and last do not change until ready is 1. Data, Keep and Last have the
	// changed bits.
	RuleStable
	// RuleDefined requires that valid is 0 or 1, and that data, keep, last and ready are while valid is 1. Data,
	// Keep and Last have the undefined bits; if they are 0, the signal is valid, or ready on a stream to the
	// role.
	RuleDefined
	// RuleIndependent requires that valid does not wait for ready. Data is the cycle in which ready was set. The
	// simulator reports it if valid came within 16 cycles of ready after each of 4 holds of ready, of different
	// lengths, and never during a hold. Such a role still exchanges messages with an engine whose ready does not
	// wait for valid.
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

// findings are faults of a role that do not stop the exchange.
type findings []*FaultError

// Findings returns the findings since the last call.
func (f *findings) Findings() []*FaultError {
	list := *f
	*f = nil
	return list
}

// broken returns the fault of a broken rule's record. context describes the call or datagram. For
// RuleIndependent it records a finding and returns nil.
func (f *findings) broken(b Boundary, r Record, at uint64, context string) *FaultError {
	signal, problem := ruleProblem(b, r)
	fault := &FaultError{b.signal(r.Kind, signal), at, problem + context}
	if r.Rule == RuleIndependent {
		*f = append(*f, fault)
		return nil
	}
	return fault
}

// ruleProblem returns the signal at fault in a broken rule's record, and a description.
func ruleProblem(b Boundary, r Record) (signal, problem string) {
	signal = changedSignal(b, r)
	switch {
	case r.Rule == RuleKeepValid:
		return "tvalid", fmt.Sprintf("withdrawn before tready, after it was set since cycle %d", r.Data)
	case r.Rule == RuleIndependent:
		return "tvalid", fmt.Sprintf("set within 16 cycles of tready (cycle %d) after each of 4 holds of tready, of "+
			"61 to 1021 cycles: valid must not wait for ready", r.Data)
	case r.Rule == RuleStable:
		return signal, "changed before tready" + bitsOf(b, r)
	case r.Kind&^KindTCP >= KindIn:
		return "tready", "neither 0 nor 1 while tvalid is 1"
	case signal == "":
		return "tvalid", "neither 0 nor 1"
	}
	return signal, "neither 0 nor 1 while tvalid is 1" + bitsOf(b, r)
}

// changedSignal returns the signal whose bits are set in a record, or "".
func changedSignal(b Boundary, r Record) string {
	isCall := !b.Network() && r.Kind == KindCall // with the number in Keep
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

// upper maps signal names to their upper-case form, used for metadata.
var upper = map[string]string{"tvalid": "TVALID", "tready": "TREADY", "tdata": "TDATA", "tkeep": "TKEEP",
	"tlast": "TLAST"}

// signal returns the name of a stream's signal. The signals of metadata are in upper case.
func (b Boundary) signal(k Kind, name string) string {
	if kind := k &^ KindTCP; b.Network() && (kind == KindOutMeta || kind == KindInMeta) {
		name = upper[name]
	}
	return b.stream(k) + "_" + name
}
