//go:build !linux

package system

import (
	"context"

	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
)

// Gather returns only unknown facts, because there is no portable way to gather them.
func Gather(context.Context, *doctor.Plan, int) *doctor.Facts { return unknown() }

// GatherQuick returns unknown facts, like Gather.
func GatherQuick(*doctor.Plan, int) *doctor.Facts { return unknown() }

func unknown() *doctor.Facts {
	const why = "this system is not Linux"
	f := &doctor.Facts{}
	for _, u := range []*string{&f.Interfaces.Unknown, &f.Buffer.Unknown, &f.Offload.Unknown, &f.Clock.Unknown,
		&f.Files.Unknown, &f.Claims.Unknown} {
		*u = why
	}
	return f
}
