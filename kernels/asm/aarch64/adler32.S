// adler32: the two sums of RFC 1950 over one block, before the modulo. Called from
// src/adler32/aarch64.rs, nowhere else.
//
// In:  x0 = first byte, x1 = length n in bytes: a multiple of 64, 64 to 5760.
// Out: x0 = (sum of (n - i) * byte[i]) << 32 | sum of byte[i], for i from 0 to n - 1.
// 5760 is the largest multiple of 64 for which the weighted sum, at most 255 * n * (n + 1) / 2,
// stays below 2^32. Reads the bytes of the slice and no other. No store, no stack, no call.
// Clobbers x0, x1, x3, v0-v2, v4-v7, v16-v18, v20-v23.
    .section .text.caisson_adler32_neon,"ax",%progbits
    .p2align 4
    .globl caisson_adler32_neon
    .hidden caisson_adler32_neon
    .type caisson_adler32_neon,%function
caisson_adler32_neon:
    .cfi_startproc
    movi v0.4s, #0                  // plain sum
    movi v1.4s, #0                  // the plain sums before each step, added up
    movi v2.4s, #0                  // weighted sum within the steps
    adrp x3, .Lcaisson_adler32_weights
    add x3, x3, :lo12:.Lcaisson_adler32_weights
    ld1 {v20.16b, v21.16b, v22.16b, v23.16b}, [x3]
1:  ld1 {v4.16b, v5.16b, v6.16b, v7.16b}, [x0], #64
    add v1.4s, v1.4s, v0.4s
    uaddlp v16.8h, v4.16b
    uadalp v16.8h, v5.16b
    uadalp v16.8h, v6.16b
    uadalp v16.8h, v7.16b
    uadalp v0.4s, v16.8h
    umull v17.8h, v4.8b, v20.8b     // at most 255 * (64 + 56 + 48 + 40): fits a half-word
    umlal2 v17.8h, v4.16b, v20.16b
    umlal v17.8h, v5.8b, v21.8b
    umlal2 v17.8h, v5.16b, v21.16b
    umull v18.8h, v6.8b, v22.8b
    umlal2 v18.8h, v6.16b, v22.16b
    umlal v18.8h, v7.8b, v23.8b
    umlal2 v18.8h, v7.16b, v23.16b
    uadalp v2.4s, v17.8h
    uadalp v2.4s, v18.8h
    subs x1, x1, #64
    b.ne 1b
    shl v1.4s, v1.4s, #6            // what came before a step counts 64 times more after it
    add v2.4s, v2.4s, v1.4s
    addv s0, v0.4s
    addv s2, v2.4s
    fmov w0, s0
    fmov w1, s2
    orr x0, x0, x1, lsl #32
    ret
    .cfi_endproc
    .size caisson_adler32_neon, . - caisson_adler32_neon

    .section .rodata.caisson_adler32,"a",%progbits
    .p2align 4
.Lcaisson_adler32_weights:
    .byte 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49
    .byte 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33
    .byte 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17
    .byte 16, 15, 14, 13, 12, 11, 10,  9,  8,  7,  6,  5,  4,  3,  2,  1
    .text
