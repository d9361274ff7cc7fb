package ctxerr

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestCause(t *testing.T) {
	boss := errors.New("the boss said so")
	for name, tt := range map[string]struct {
		end  func(context.Context) context.Context
		text string
		is   []error
	}{
		"not done": {func(ctx context.Context) context.Context { return ctx }, "", nil},
		"canceled": {func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx
		}, "context canceled", []error{context.Canceled}},
		"canceled with a cause": {func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(boss)
			return ctx
		}, "the boss said so", []error{context.Canceled, boss}},
		"deadline with a cause": {func(ctx context.Context) context.Context {
			ctx, cancel := context.WithDeadlineCause(ctx, time.Unix(1, 0), boss)
			defer cancel()
			return ctx
		}, "the boss said so", []error{context.DeadlineExceeded, boss}},
		"deadline with a cause that wraps it": {func(ctx context.Context) context.Context {
			ctx, cancel := context.WithDeadlineCause(ctx, time.Unix(1, 0),
				fmt.Errorf("no answer: %w", context.DeadlineExceeded))
			defer cancel()
			return ctx
		}, "no answer: context deadline exceeded", []error{context.DeadlineExceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Cause(tt.end(t.Context()))
			if tt.is == nil {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || err.Error() != tt.text {
				t.Fatalf("got %v, want %s", err, tt.text)
			}
			for _, want := range tt.is {
				if !errors.Is(err, want) {
					t.Errorf("%v is not %v", err, want)
				}
			}
		})
	}
}
