package statuspage

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/internal/words"
)

// Entry is a line in the log.
type Entry struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"`
	Text  string    `json:"text"`
	// Count is the number of times that the line was logged in succession.
	Count int `json:"count"`
}

// maxText is the maximum length of a line in characters.
const maxText = 500

// Log keeps the most recent lines of a log. It is safe for concurrent use.
type Log struct {
	limit int
	mu    sync.Mutex
	lines []Entry // newest last
}

// NewLog returns a Log that keeps the most recent max(1, limit) lines.
func NewLog(limit int) *Log { return &Log{limit: max(1, limit)} }

// Recent returns the lines, newest first.
func (l *Log) Recent() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := make([]Entry, len(l.lines))
	for i := range lines {
		lines[i] = l.lines[len(lines)-1-i]
	}
	return lines
}

// Core returns a zap core, for zapcore.NewTee, that adds lines of the given level and above to the log.
func (l *Log) Core(level zapcore.LevelEnabler) zapcore.Core {
	return &core{LevelEnabler: level, log: l}
}

// add appends a line, and removes the oldest one at the limit. A line that equals the previous one only increases the
// count of that line and updates its time.
func (l *Log) add(entry Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.lines); n > 0 && l.lines[n-1].Text == entry.Text && l.lines[n-1].Level == entry.Level {
		entry.Count += l.lines[n-1].Count
		l.lines[n-1] = entry
		return
	}
	if len(l.lines) == l.limit {
		copy(l.lines, l.lines[1:])
		l.lines = l.lines[:l.limit-1]
	}
	l.lines = append(l.lines, entry)
}

// core is a zap core that writes to a Log. fields are the fields added by With.
type core struct {
	zapcore.LevelEnabler
	log    *Log
	fields []zapcore.Field
}

// With implements zapcore.Core.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.LevelEnabler, c.log, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

// Check implements zapcore.Core.
func (c *core) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements zapcore.Core.
func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	text := e.Message
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		text += fieldText(f)
	}
	c.log.add(Entry{Time: e.Time, Level: e.Level.String(), Text: words.Clean(text, maxText), Count: 1})
	return nil
}

// fieldText returns the text of a log field, in the form in which it follows the message.
func fieldText(f zapcore.Field) string {
	enc := zapcore.NewMapObjectEncoder()
	f.AddTo(enc)
	var b strings.Builder
	if v, ok := enc.Fields[f.Key]; ok {
		fmt.Fprintf(&b, "; %s: %v", strings.ReplaceAll(f.Key, "_", " "), v)
	}
	return b.String()
}

// Sync implements zapcore.Core.
func (c *core) Sync() error { return nil }
