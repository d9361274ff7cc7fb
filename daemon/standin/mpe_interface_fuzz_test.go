package standin

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// fuzzRank is rank 1 of 3. It accepts all sends and receives half of the posted length. Calls with rank 2 fail.
type fuzzRank struct{ words int }

func (r *fuzzRank) Rank() int { return 1 }
func (r *fuzzRank) Size() int { return 3 }

func (r *fuzzRank) check(rank int, buf []byte) error {
	r.words += len(buf) / 4
	switch rank {
	case 0:
		return nil
	case 2:
		return handshake.ErrTimeout
	}
	return mpe.ErrRank
}

func (r *fuzzRank) Send(_ context.Context, dst int, data []byte, _ mpe.Options) (mpe.Status, error) {
	return mpe.Status{Words: uint32(len(data) / 4)}, r.check(dst, data)
}

func (r *fuzzRank) Recv(_ context.Context, src int, buf []byte, _ mpe.Options) (mpe.Status, error) {
	for i := range buf {
		buf[i] = 0xff
	}
	return mpe.Status{Words: uint32(len(buf) / 8)}, r.check(src, buf)
}

// FuzzMPEInterface checks that each call of a program, except an incomplete last call, gets exactly one
// well-formed feedback, and that no call exceeds the maximum.
func FuzzMPEInterface(f *testing.F) {
	for _, calls := range [][]byte{
		{}, {1}, {1, 8, 0, 0, 0, 0, 0, 0, 0},
		{0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 3, 2, 0, 0, 0, 0, 0, 0, 0},
		{2, 1, 0, 0, 0, 2, 0, 0, 0, 1, 2, 3, 4}, {4, 0, 0, 0, 0, 0, 0, 0, 0}, {5, 0, 0, 0, 0, 0, 0, 0, 0},
		{1, 100, 0, 0, 0, 0, 0, 0, 0, 1, 100, 0, 0, 0, 2, 0, 0, 0},
		{0, 255, 255, 255, 255, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 255, 255, 255, 255},
	} {
		f.Add(calls)
	}
	const most = 300
	f.Fuzz(func(t *testing.T, calls []byte) {
		if len(calls) > 1<<12 {
			return
		}
		// In a bubble, the pauses after failures take no real time.
		synctest.Test(t, func(t *testing.T) {
			in, rank := bytes.NewReader(calls), &fuzzRank{}
			var out bytes.Buffer
			m := &mpeInterface{
				rank: rank, in: in, out: &out, buf: make([]byte, interfaceBufLen(most)), words: most,
				log: zap.NewNop(), counters: new(counters), state: new(programState),
			}
			err := m.serve(t.Context())
			if err == nil && in.Len() > 0 {
				t.Errorf("ended with %d bytes unread", in.Len())
			}
			if err != nil && !errors.Is(err, ErrMalformedCall) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("ended with %v", err)
			}
			if err := checkAnswers(calls, out.Bytes(), err == nil); err != nil {
				t.Error(err)
			}
			if rank.words > most*len(calls) {
				t.Errorf("%d words for %d bytes of calls", rank.words, len(calls))
			}
		})
	})
}

// checkAnswers compares calls with the feedback that they got.
func checkAnswers(calls, answers []byte, whole bool) error {
	for len(answers) > 0 {
		if len(calls) < callLen || len(answers) < feedbackLen {
			return fmt.Errorf("% x answers % x", answers, calls)
		}
		code, count, rank := calls[0], binary.LittleEndian.Uint32(calls[1:]), binary.LittleEndian.Uint32(calls[5:])
		status, words := answers[0], binary.LittleEndian.Uint32(answers[1:])
		calls, answers = calls[callLen:], answers[feedbackLen:]
		if code == 0 || code == 2 {
			calls = calls[4*count:]
		}
		want := uint32(0)
		if code == 1 || code == 3 {
			want = count / 2
		}
		good := code < 4 && rank == 0
		if good && (status != 1 || words != want) || !good && (status != 2 || words == 0 || words > 256) {
			return fmt.Errorf("call %d, count %d, rank %d: status %d, %d words", code, count, rank, status, words)
		}
		if text := answers[:4*words]; !good &&
			(!utf8.Valid(text) || len(bytes.TrimRight(text, "\x00")) <= len(text)-4) {
			return fmt.Errorf("the text of FAIL is %q", text)
		}
		answers = answers[4*words:]
	}
	if whole && len(calls) > 0 {
		return fmt.Errorf("% x is not answered", calls)
	}
	return nil
}
