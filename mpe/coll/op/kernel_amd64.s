#include "textflag.h"

// Each function consists of KERNEL with two macros: INIT sets the constants in Y14 and Y15, and OP(A, B, T) sets
// A = A ∘ B and overwrites B, T and Y13.
//
// A vector is 32 bytes. The last one may overlap the one before it, and result may be left or right, so KERNEL computes
// the last vector before its loops, and stores it after them. AX is the offset of the next vector, CX the offset of the
// last one, and BX the greatest offset at which four vectors can begin.
#define KERNEL(INIT, OP) \
	MOVQ    result+0(FP), DI;      \
	MOVQ    left+8(FP), SI;        \
	MOVQ    right+16(FP), DX;      \
	MOVQ    n+24(FP), CX;          \
	INIT;                          \
	SUBQ    $32, CX;               \
	VMOVDQU (SI)(CX*1), Y12;       \
	VMOVDQU (DX)(CX*1), Y4;        \
	OP(Y12, Y4, Y8);               \
	XORL    AX, AX;                \
	LEAQ    -96(CX), BX;           \
	CMPQ    AX, BX;                \
	JG      single;                \
four:                            \
	VMOVDQU 0(SI)(AX*1), Y0;       \
	VMOVDQU 32(SI)(AX*1), Y1;      \
	VMOVDQU 64(SI)(AX*1), Y2;      \
	VMOVDQU 96(SI)(AX*1), Y3;      \
	VMOVDQU 0(DX)(AX*1), Y4;       \
	VMOVDQU 32(DX)(AX*1), Y5;      \
	VMOVDQU 64(DX)(AX*1), Y6;      \
	VMOVDQU 96(DX)(AX*1), Y7;      \
	OP(Y0, Y4, Y8);                \
	OP(Y1, Y5, Y9);                \
	OP(Y2, Y6, Y10);               \
	OP(Y3, Y7, Y11);               \
	VMOVDQU Y0, 0(DI)(AX*1);       \
	VMOVDQU Y1, 32(DI)(AX*1);      \
	VMOVDQU Y2, 64(DI)(AX*1);      \
	VMOVDQU Y3, 96(DI)(AX*1);      \
	ADDQ    $128, AX;              \
	CMPQ    AX, BX;                \
	JLE     four;                  \
single:                          \
	CMPQ    AX, CX;                \
	JGE     last;                  \
	VMOVDQU (SI)(AX*1), Y0;        \
	VMOVDQU (DX)(AX*1), Y4;        \
	OP(Y0, Y4, Y8);                \
	VMOVDQU Y0, (DI)(AX*1);        \
	ADDQ    $32, AX;               \
	JMP     single;                \
last:                            \
	VMOVDQU Y12, (DI)(CX*1);       \
	VZEROUPPER;                    \
	RET

// Constants.
#define NONE
#define ONES VPCMPEQD Y15, Y15, Y15
#define LOWBYTE ONES; VPSRLW $8, Y15, Y15
#define SIGN32 ONES; VPSLLD $31, Y15, Y15
#define SIGN64 ONES; VPSLLQ $63, Y15, Y15
// 1 in each element of Y15, and 0 in Y14.
#define TRUTH8 ONES; VPABSB Y15, Y15; VPXOR Y14, Y14, Y14
#define TRUTH16 ONES; VPABSW Y15, Y15; VPXOR Y14, Y14, Y14
#define TRUTH32 ONES; VPABSD Y15, Y15; VPXOR Y14, Y14, Y14
#define TRUTH64 ONES; VPSRLQ $63, Y15, Y15; VPXOR Y14, Y14, Y14

// Sums and products. Of two NaNs, the result is the left one, as in Go on amd64.
#define ADD8(A, B, T) VPADDB B, A, A
#define ADD16(A, B, T) VPADDW B, A, A
#define ADD32(A, B, T) VPADDD B, A, A
#define ADD64(A, B, T) VPADDQ B, A, A
#define ADDF32(A, B, T) VADDPS B, A, A
#define ADDF64(A, B, T) VADDPD B, A, A
// The bytes at odd addresses are the high halves of 16 bits. Y15 masks the low halves.
#define MUL8(A, B, T) VPSRLW $8, A, T; VPMULLW B, A, A; VPANDN B, Y15, B; VPMULLW B, T, T; VPAND Y15, A, A; VPOR T, A, A
#define MUL16(A, B, T) VPMULLW B, A, A
#define MUL32(A, B, T) VPMULLD B, A, A
// The low halves' product, plus the products of a low and a high half in its upper half.
#define MUL64(A, B, T) \
	VPSHUFD  $0xb1, B, T; \
	VPMULLD  A, T, T;     \
	VPSRLQ   $32, T, Y13; \
	VPADDD   Y13, T, T;   \
	VPSLLQ   $32, T, T;   \
	VPMULUDQ B, A, A;     \
	VPADDQ   T, A, A
#define MUL64VL(A, B, T) VPMULLQ B, A, A
#define MULF32(A, B, T) VMULPS B, A, A
#define MULF64(A, B, T) VMULPD B, A, A

#define MAXI8(A, B, T) VPMAXSB B, A, A
#define MAXI16(A, B, T) VPMAXSW B, A, A
#define MAXI32(A, B, T) VPMAXSD B, A, A
#define MAXI64(A, B, T) VPCMPGTQ B, A, T; VBLENDVPD T, A, B, A
#define MAXI64VL(A, B, T) VPMAXSQ B, A, A
#define MAXU8(A, B, T) VPMAXUB B, A, A
#define MAXU16(A, B, T) VPMAXUW B, A, A
#define MAXU32(A, B, T) VPMAXUD B, A, A
#define MAXU64(A, B, T) VPXOR Y15, A, T; VPXOR Y15, B, Y13; VPCMPGTQ Y13, T, T; VBLENDVPD T, A, B, A
#define MAXU64VL(A, B, T) VPMAXUQ B, A, A
#define MINI8(A, B, T) VPMINSB B, A, A
#define MINI16(A, B, T) VPMINSW B, A, A
#define MINI32(A, B, T) VPMINSD B, A, A
#define MINI64(A, B, T) VPCMPGTQ B, A, T; VBLENDVPD T, B, A, A
#define MINI64VL(A, B, T) VPMINSQ B, A, A
#define MINU8(A, B, T) VPMINUB B, A, A
#define MINU16(A, B, T) VPMINUW B, A, A
#define MINU32(A, B, T) VPMINUD B, A, A
#define MINU64(A, B, T) VPXOR Y15, A, T; VPXOR Y15, B, Y13; VPCMPGTQ Y13, T, T; VBLENDVPD T, B, A, A
#define MINU64VL(A, B, T) VPMINUQ B, A, A

// The instructions return their second operand if the two are equal or one is a NaN, so max and min are computed for
// both orders. The two results differ only if they are zeros of different sign, or for a NaN, which OR preserves. The
// sign is set by min if it is set in either, and by max if it is set in both; Y15 has its bit. Go gives the same bits.
#define MINF32(A, B, T) VMINPS B, A, T; VMINPS A, T, A; VORPS T, A, A
#define MINF64(A, B, T) VMINPD B, A, T; VMINPD A, T, A; VORPD T, A, A
#define MAXF32(A, B, T) VMAXPS B, A, T; VMAXPS A, T, A; VANDPS T, A, B; VORPS T, A, A; VANDNPS A, Y15, A; VORPS B, A, A
#define MAXF64(A, B, T) VMAXPD B, A, T; VMAXPD A, T, A; VANDPD T, A, B; VORPD T, A, A; VANDNPD A, Y15, A; VORPD B, A, A

#define BITAND(A, B, T) VPAND B, A, A
#define BITOR(A, B, T) VPOR B, A, A
#define BITXOR(A, B, T) VPXOR B, A, A

// EQ compares with 0.
#define BOTH(EQ, A, B) EQ Y14, A, A; EQ Y14, B, B; VPOR B, A, A; VPANDN Y15, A, A
#define EITHER(EQ, A, B) VPOR B, A, A; EQ Y14, A, A; VPANDN Y15, A, A
#define ONLYONE(EQ, A, B) EQ Y14, A, A; EQ Y14, B, B; VPXOR B, A, A; VPAND Y15, A, A
#define LAND8(A, B, T) BOTH(VPCMPEQB, A, B)
#define LAND16(A, B, T) BOTH(VPCMPEQW, A, B)
#define LAND32(A, B, T) BOTH(VPCMPEQD, A, B)
#define LAND64(A, B, T) BOTH(VPCMPEQQ, A, B)
#define LOR8(A, B, T) EITHER(VPCMPEQB, A, B)
#define LOR16(A, B, T) EITHER(VPCMPEQW, A, B)
#define LOR32(A, B, T) EITHER(VPCMPEQD, A, B)
#define LOR64(A, B, T) EITHER(VPCMPEQQ, A, B)
#define LXOR8(A, B, T) ONLYONE(VPCMPEQB, A, B)
#define LXOR16(A, B, T) ONLYONE(VPCMPEQW, A, B)
#define LXOR32(A, B, T) ONLYONE(VPCMPEQD, A, B)
#define LXOR64(A, B, T) ONLYONE(VPCMPEQQ, A, B)

TEXT ·sumInt8(SB), NOSPLIT, $0-32
	KERNEL(NONE, ADD8)

TEXT ·sumInt16(SB), NOSPLIT, $0-32
	KERNEL(NONE, ADD16)

TEXT ·sumInt32(SB), NOSPLIT, $0-32
	KERNEL(NONE, ADD32)

TEXT ·sumInt64(SB), NOSPLIT, $0-32
	KERNEL(NONE, ADD64)

TEXT ·sumFloat32(SB), NOSPLIT, $0-32
	KERNEL(NONE, ADDF32)

TEXT ·sumFloat64(SB), NOSPLIT, $0-32
	KERNEL(NONE, ADDF64)

TEXT ·prodInt8(SB), NOSPLIT, $0-32
	KERNEL(LOWBYTE, MUL8)

TEXT ·prodInt16(SB), NOSPLIT, $0-32
	KERNEL(NONE, MUL16)

TEXT ·prodInt32(SB), NOSPLIT, $0-32
	KERNEL(NONE, MUL32)

TEXT ·prodInt64(SB), NOSPLIT, $0-32
	KERNEL(NONE, MUL64)

TEXT ·prodFloat32(SB), NOSPLIT, $0-32
	KERNEL(NONE, MULF32)

TEXT ·prodFloat64(SB), NOSPLIT, $0-32
	KERNEL(NONE, MULF64)

TEXT ·maxInt8(SB), NOSPLIT, $0-32
	KERNEL(NONE, MAXI8)

TEXT ·maxInt16(SB), NOSPLIT, $0-32
	KERNEL(NONE, MAXI16)

TEXT ·maxInt32(SB), NOSPLIT, $0-32
	KERNEL(NONE, MAXI32)

TEXT ·maxInt64(SB), NOSPLIT, $0-32
	KERNEL(NONE, MAXI64)

TEXT ·maxUint8(SB), NOSPLIT, $0-32
	KERNEL(NONE, MAXU8)

TEXT ·maxUint16(SB), NOSPLIT, $0-32
	KERNEL(NONE, MAXU16)

TEXT ·maxUint32(SB), NOSPLIT, $0-32
	KERNEL(NONE, MAXU32)

TEXT ·maxUint64(SB), NOSPLIT, $0-32
	KERNEL(SIGN64, MAXU64)

TEXT ·maxFloat32(SB), NOSPLIT, $0-32
	KERNEL(SIGN32, MAXF32)

TEXT ·maxFloat64(SB), NOSPLIT, $0-32
	KERNEL(SIGN64, MAXF64)

TEXT ·minInt8(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINI8)

TEXT ·minInt16(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINI16)

TEXT ·minInt32(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINI32)

TEXT ·minInt64(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINI64)

TEXT ·minUint8(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINU8)

TEXT ·minUint16(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINU16)

TEXT ·minUint32(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINU32)

TEXT ·minUint64(SB), NOSPLIT, $0-32
	KERNEL(SIGN64, MINU64)

TEXT ·minFloat32(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINF32)

TEXT ·minFloat64(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINF64)

TEXT ·landInt8(SB), NOSPLIT, $0-32
	KERNEL(TRUTH8, LAND8)

TEXT ·landInt16(SB), NOSPLIT, $0-32
	KERNEL(TRUTH16, LAND16)

TEXT ·landInt32(SB), NOSPLIT, $0-32
	KERNEL(TRUTH32, LAND32)

TEXT ·landInt64(SB), NOSPLIT, $0-32
	KERNEL(TRUTH64, LAND64)

TEXT ·lorInt8(SB), NOSPLIT, $0-32
	KERNEL(TRUTH8, LOR8)

TEXT ·lorInt16(SB), NOSPLIT, $0-32
	KERNEL(TRUTH16, LOR16)

TEXT ·lorInt32(SB), NOSPLIT, $0-32
	KERNEL(TRUTH32, LOR32)

TEXT ·lorInt64(SB), NOSPLIT, $0-32
	KERNEL(TRUTH64, LOR64)

TEXT ·lxorInt8(SB), NOSPLIT, $0-32
	KERNEL(TRUTH8, LXOR8)

TEXT ·lxorInt16(SB), NOSPLIT, $0-32
	KERNEL(TRUTH16, LXOR16)

TEXT ·lxorInt32(SB), NOSPLIT, $0-32
	KERNEL(TRUTH32, LXOR32)

TEXT ·lxorInt64(SB), NOSPLIT, $0-32
	KERNEL(TRUTH64, LXOR64)

TEXT ·band(SB), NOSPLIT, $0-32
	KERNEL(NONE, BITAND)

TEXT ·bor(SB), NOSPLIT, $0-32
	KERNEL(NONE, BITOR)

TEXT ·bxor(SB), NOSPLIT, $0-32
	KERNEL(NONE, BITXOR)

TEXT ·prodInt64VL(SB), NOSPLIT, $0-32
	KERNEL(NONE, MUL64VL)

TEXT ·maxInt64VL(SB), NOSPLIT, $0-32
	KERNEL(NONE, MAXI64VL)

TEXT ·maxUint64VL(SB), NOSPLIT, $0-32
	KERNEL(NONE, MAXU64VL)

TEXT ·minInt64VL(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINI64VL)

TEXT ·minUint64VL(SB), NOSPLIT, $0-32
	KERNEL(NONE, MINU64VL)

// The triad of STREAM, for benchmarks: 3.0 in Y15.
#define THREE ONES; VPABSD Y15, Y15; VPADDD Y15, Y15, Y14; VPADDD Y14, Y15, Y15; VCVTDQ2PD X15, Y15
#define TRIAD(A, B, T) VMULPD Y15, B, B; VADDPD B, A, A

TEXT ·triadFloat64(SB), NOSPLIT, $0-32
	KERNEL(THREE, TRIAD)
