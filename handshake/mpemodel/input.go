package mpemodel

const (
	// lineLen is the width, in bytes, of the data path of the shell, and wordLen that of the MPE.
	lineLen = 8
	wordLen = 2 * lineLen
	// maxSources is the capacity of the FIFO that holds source ranks.
	maxSources = 32
)

// word is the unit in which the MPE reads: one or two lines of a datagram.
type word struct {
	b [wordLen]byte
	// n is the number of valid bytes in the word. The remaining bytes are 0.
	n int
	// last is set if the word is the last one of a datagram.
	last bool
}

// words returns the number of 32-bit words that the MPE counts when it reads w.
func (w word) words() uint32 { return uint32((w.n + 3) / 4) }

// input is the interface between the shell and the MPE. It consists of two FIFOs, for data and for source ranks, which
// the MPE reads independently. A read of one word too many or too few puts the FIFOs out of step.
type input struct {
	words   []word
	sources []int
	// heldWords is the part of a datagram for which the FIFOs have no space yet.
	heldWords        []word
	heldSource       int
	heldSourceQueued bool // its source is already in the FIFO

	maxWords, maxSources int // 0 means no limit
	dropped              int
}

// enqueue passes a datagram from the network to the shell. While the shell holds a datagram back, it drops later ones.
func (in *input) enqueue(source int, b []byte) {
	if len(in.heldWords) > 0 {
		in.dropped++
		return
	}
	for len(b) > 0 {
		var w word
		w.n = copy(w.b[:], b)
		b = b[w.n:]
		w.last = len(b) == 0
		in.heldWords = append(in.heldWords, w)
	}
	in.heldSource, in.heldSourceQueued = source, false
}

// fillFIFOs moves as much of the held datagram as fits into the FIFOs, and reports whether it moved anything.
func (in *input) fillFIFOs() bool {
	moved := false
	for len(in.heldWords) > 0 && (in.maxWords == 0 || len(in.words) < in.maxWords) {
		if !in.heldSourceQueued {
			if in.sourcesFull() {
				break
			}
			in.sources = append(in.sources, in.heldSource)
			in.heldSourceQueued = true
		}
		in.words = append(in.words, in.heldWords[0])
		in.heldWords = in.heldWords[1:]
		moved = true
	}
	return moved
}

// sourcesFull reports whether the shell must hold datagrams back because the MPE has not read enough source ranks.
func (in *input) sourcesFull() bool {
	return in.maxSources > 0 && len(in.sources) >= in.maxSources
}

// readable reports whether the MPE can read in a wait, which requires both data and a source rank.
func (in *input) readable() bool { return len(in.words) > 0 && len(in.sources) > 0 }

func (in *input) popWord() (word, bool) {
	if len(in.words) == 0 {
		return word{}, false
	}
	w := in.words[0]
	in.words = in.words[1:]
	return w, true
}

func (in *input) popSource() int {
	s := in.sources[0]
	in.sources = in.sources[1:]
	return s
}
