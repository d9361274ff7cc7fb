#include "textflag.h"

// func extHeaderSumSSE42(header *[ExtHeaderLen]byte) uint32
//
// CRC32Q takes eight bytes at a time. The eight from byte 24 on are the checksum, taken as 0, and the end mark.
TEXT ·extHeaderSumSSE42(SB), NOSPLIT, $0-12
	MOVQ header+0(FP), SI
	MOVL $-1, AX
	MOVL 28(SI), DX
	SHLQ $32, DX
	CRC32Q 0(SI), AX
	CRC32Q 8(SI), AX
	CRC32Q 16(SI), AX
	CRC32Q DX, AX
	CRC32Q 32(SI), AX
	CRC32Q 40(SI), AX
	CRC32Q 48(SI), AX
	CRC32Q 56(SI), AX
	CRC32Q 64(SI), AX
	CRC32Q 72(SI), AX
	NOTL AX
	MOVL AX, ret+8(FP)
	RET
