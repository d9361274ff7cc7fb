package match

import "testing"

// FuzzMatcher decodes a program, three bytes per operation, and compares it with the model. There are few
// keys, so that matches are frequent.
func FuzzMatcher(f *testing.F) {
	f.Add([]byte{0, 0x12, 1, 1, 0x12, 1})
	f.Add([]byte{0, 0xF2, 1, 0, 0x1F, 1, 0, 0xFF, 1, 1, 0x12, 0, 1, 0x12, 0, 1, 0x12, 0})
	f.Add([]byte{1, 0x11, 200, 1, 0x12, 200, 4, 0xF2, 0, 6, 0, 3, 5, 0x1F, 0, 2, 9, 9, 7, 1, 1, 3, 2, 2, 8, 0, 3})
	f.Fuzz(func(t *testing.T, program []byte) {
		step := 0
		defer func() {
			if err := mismatched(recover(), step); err != nil {
				t.Fatal(err)
			}
		}()
		if len(program) > 3000 {
			program = program[:3000]
		}
		l := Limits{}
		if len(program) > 0 && program[0]&0x80 != 0 {
			l = Limits{Posted: 300, Unexpected: 280}
		}
		o := newModel(l)
		for ; len(program) >= 3; program = program[3:] {
			fuzzStep(o, program[0]&0x7F, program[1], int(program[2]))
			step++
		}
		o.compare()
	})
}

// fuzzStep runs one operation. Posts and arrivals are repeated, so that a short program fills the queues.
func fuzzStep(o *model, op, key byte, n int) {
	source, tag := int32(key>>4), int32(key&15)
	wildSource, wildTag := source, tag
	if source == 15 {
		wildSource = AnySource
	}
	if tag == 15 {
		wildTag = AnyTag
	}
	switch op % 9 {
	case 0:
		for i := range n%64 + 1 {
			if wildTag != AnyTag && n >= 128 {
				wildTag = tag + int32(i%8)
			}
			o.post(wildSource, wildTag)
		}
	case 1:
		for i := range n%64 + 1 {
			if n >= 128 {
				tag = int32(key&15) + int32(i%8)
			}
			o.arrive(source, tag)
		}
	case 2:
		o.cancel(int(key)<<8 | n)
	case 3:
		o.remove(int(key)<<8 | n)
	case 4:
		o.probe(wildSource, wildTag, false)
	case 5:
		o.probe(wildSource, wildTag, true)
	case 6:
		o.restore(n)
	case 7:
		o.restoreBad(n)
	default:
		o.stale(int(key)<<8 | n)
	}
}
