package protocol_test

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// datagrams returns the lengths of a message's datagrams, including the header.
func datagrams(s protocol.Shape, words uint32) (lens []int64) {
	total := s.PayloadBytes(words)
	for off := int64(0); off < total || off == 0; {
		n := s.PayloadAt(off, total)
		if off == 0 {
			lens = append(lens, n+protocol.HeaderLen)
		} else {
			lens = append(lens, n)
		}
		if off += n; n == 0 {
			break
		}
	}
	return lens
}

func TestDatagramsAsDeployed(t *testing.T) {
	cpu, mpe, shell := protocol.CPUShape(), protocol.FPGAShape(true), protocol.FPGAShape(false)
	for _, c := range []struct {
		shape protocol.Shape
		words uint32
		want  []int64
	}{
		{cpu, 0, []int64{32}},
		{cpu, 1, []int64{36}},
		{cpu, 346, []int64{1416}},
		{cpu, 347, []int64{1416, 4}},
		{cpu, 1000, []int64{1416, 1416, 1200}},
		{mpe, 0, []int64{40}},
		{mpe, 1, []int64{40}},
		{mpe, 2, []int64{40}},
		{mpe, 3, []int64{48}},
		{mpe, 5, []int64{56}},
		{mpe, 346, []int64{1416}},
		{mpe, 347, []int64{1424}},
		{mpe, 348, []int64{1424}},
		{mpe, 349, []int64{1416, 16}},
		{mpe, 701, []int64{1416, 1416, 8}},
		{mpe, 1000, []int64{1416, 1416, 1200}},
		{mpe, 347 + 708, []int64{1416, 1416, 1424}},
		{shell, 347, []int64{1416, 8}},
		{shell, 347 + 708, []int64{1416, 1416, 1416, 8}},
	} {
		got := datagrams(c.shape, c.words)
		same := len(got) == len(c.want)
		for i := 0; same && i < len(got); i++ {
			same = got[i] == c.want[i]
		}
		if !same {
			t.Errorf("%d words, %+v: %v, want %v", c.words, c.shape, got, c.want)
		}
	}
}

func TestDatagramsCountAndLongTails(t *testing.T) {
	for _, s := range []protocol.Shape{protocol.CPUShape(), protocol.FPGAShape(true), protocol.FPGAShape(false),
		{MaxDatagram: 512}} {
		for words := uint32(0); words < 5000; words++ {
			lens := datagrams(s, words)
			if int64(len(lens)) != s.NumDatagrams(words) {
				t.Fatalf("%+v, %d words: Datagrams is %d, but there are %v", s, words, s.NumDatagrams(words), lens)
			}
			var sum int64
			for i, n := range lens {
				sum += n
				if i < len(lens)-1 && n != int64(s.MaxDatagram) {
					t.Fatalf("%+v, %d words: datagram %d of %v is not full", s, words, i, lens)
				}
			}
			if sum != s.PayloadBytes(words)+protocol.HeaderLen {
				t.Fatalf("%+v, %d words: %v adds up to %d", s, words, lens, sum)
			}
			long := lens[len(lens)-1] > int64(s.MaxDatagram)
			if mod := words % 708; long != (s.LongTail && (mod == 347 || mod == 348)) {
				t.Fatalf("%+v, %d words: %v", s, words, lens)
			}
		}
	}
}
