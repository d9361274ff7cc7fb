package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/lease"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/shm"
)

var update = flag.Bool("update", false, "write lib/c/lease.h")

// TestLease checks that lease.h, which is compiled without running this program, is up to date.
func TestLease(t *testing.T) {
	const file = "../c/lease.h"
	if *update {
		if err := os.WriteFile(file, []byte(leaseH()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != leaseH() {
		t.Errorf("%s is out of date (%v): run go test ./lib/gen -run TestLease -update", file, err)
	}
}

// leaseH returns lease.h: the types and constants of package lease in C. The compiler checks that every field is where
// Go expects it.
func leaseH() string {
	var b strings.Builder
	b.WriteString("/* The memory that the engine leases to C code, generated from package lease by a test of lib/gen. */\n")
	b.WriteString("#ifndef ZRL_LEASE_H\n#define ZRL_LEASE_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n")
	for _, c := range []struct {
		name  string
		value uint64
	}{
		{"MAX_COMMS", lease.MaxComms}, {"MAX_RANKS", lease.MaxRanks}, {"MAX_SHAPES", lease.MaxShapes},
		{"MAX_EVENTS", lease.MaxEvents}, {"MAX_PAYLOAD", lease.MaxPayload}, {"MAX_TYPES", lease.MaxTypes},
		{"KEPT", uint64(lease.Kept)}, {"LEASED", uint64(lease.Leased)}, {"BUSY", uint64(lease.Busy)},
		{"BARRIER", uint64(lease.Barrier)}, {"BCAST", uint64(lease.Bcast)}, {"REDUCE", uint64(lease.Reduce)},
		{"ALLREDUCE", uint64(lease.Allreduce)}, {"ALLGATHER", uint64(lease.Allgather)},
		{"ALLTOALL", uint64(lease.Alltoall)},
		{"SENT", uint64(lease.Sent)}, {"RECEIVED", uint64(lease.Received)}, {"CALLED", uint64(lease.Called)},
		{"SHORT_HEADER", protocol.ShortHeaderLen}, {"MAX_TAG", protocol.MaxExtTag},
		{"ACK_EVERY", lease.AckEvery}, {"COUNT_BITS", lease.CountBits}, {"CALLS", collective.Tags},
	} {
		fmt.Fprintf(&b, "#define ZRL_%s %du\n", c.name, c.value)
	}
	for _, o := range lease.Operations {
		fmt.Fprintf(&b, "#define ZRL_%v %du\n", o, o)
	}
	for _, t := range lease.Elements {
		fmt.Fprintf(&b, "#define ZRL_%s %du\n", strings.ToUpper(t.String()), t)
	}
	for _, c := range shm.LayoutConstants() {
		fmt.Fprintf(&b, "#define ZRL_%s %du\n", c.Name, c.Value)
	}
	writeStruct(&b, reflect.TypeFor[lease.Block](), map[reflect.Type]bool{})
	b.WriteString("\n#endif\n")
	return b.String()
}

// cName returns the name of a struct in C.
func cName(t reflect.Type) string { return "zrl_" + strings.ToLower(t.Name()) }

// writeStruct writes the declaration of a struct after those of the structs in it.
func writeStruct(b *strings.Builder, t reflect.Type, done map[reflect.Type]bool) {
	var fields, checks strings.Builder
	for i := range t.NumField() {
		f := t.Field(i)
		of, array := f.Type, ""
		if of.Kind() == reflect.Array {
			of, array = of.Elem(), fmt.Sprintf("[%d]", of.Len())
		}
		// C has names like those of Go, but they begin with a lower-case letter.
		name, kind := strings.ToLower(f.Name[:1])+f.Name[1:], of.Kind().String()+"_t"
		if of.Kind() == reflect.Struct {
			if !done[of] {
				writeStruct(b, of, done)
			}
			kind = cName(of)
		}
		fmt.Fprintf(&fields, "    %s %s%s;\n", kind, name, array)
		fmt.Fprintf(&checks, "_Static_assert(offsetof(%s, %s) == %d, \"layout\");\n", cName(t), name, f.Offset)
	}
	fmt.Fprintf(b, "\ntypedef struct {\n%s} %s;\n%s", fields.String(), cName(t), checks.String())
	fmt.Fprintf(b, "_Static_assert(sizeof(%s) == %d, \"layout\");\n", cName(t), t.Size())
	done[t] = true
}
