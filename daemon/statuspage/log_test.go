package statuspage

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestLogKeepsTheLast(t *testing.T) {
	l := NewLog(3)
	log := zap.New(l.Core(zapcore.WarnLevel)).With(zap.String("node", "n7"))
	log.Info("not worth it")
	for i := range 5 {
		log.Warn(fmt.Sprintf("line %d", i), zap.Int("rank", 1))
	}
	log.Error("broken", zap.Error(errors.New("why")), zap.Int("local_ranks", 2))
	log.Error("broken", zap.Error(errors.New("why")), zap.Int("local_ranks", 2))
	if err := log.Sync(); err != nil {
		t.Error(err)
	}
	var got []string
	for _, e := range l.Recent() {
		got = append(got, fmt.Sprintf("%s %d: %s", e.Level, e.Count, e.Text))
		if e.Time.IsZero() {
			t.Error("a line without a time")
		}
	}
	want := "error 2: broken; node: n7; error: why; local ranks: 2|warn 1: line 4; node: n7; rank: 1|warn 1: line 3; " +
		"node: n7; rank: 1"
	if strings.Join(got, "|") != want {
		t.Errorf("%q", got)
	}
}

// TestLogIsBounded checks that the size of the kept log is limited, and that it contains no control characters.
func TestLogIsBounded(t *testing.T) {
	l := NewLog(0)
	log := zap.New(l.Core(zapcore.WarnLevel))
	log.Warn(strings.Repeat("x", 10*maxText))
	if e := l.Recent(); len(e) != 1 || len([]rune(e[0].Text)) != maxText {
		t.Errorf("%d lines", len(e))
	}
	log.Warn("a\x1b[2Jb\nc")
	if e := l.Recent(); len(e) != 1 || e[0].Text != "a\uFFFD[2Jb c" {
		t.Errorf("%+v", e)
	}
}

func TestLogConcurrently(t *testing.T) {
	l := NewLog(10)
	log := zap.New(l.Core(zapcore.WarnLevel))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 100 {
				log.Warn(fmt.Sprint(i, j))
				l.Recent()
			}
		})
	}
	all.Wait()
	if n := len(l.Recent()); n != 10 {
		t.Errorf("%d lines", n)
	}
}
