// lf_to_crlf: the bulk of a text on its way out. Called from src/lf_to_crlf/aarch64.rs, nowhere else.
//
// In:  x0 = first byte to convert; the byte before it is readable and is the text's previous one.
//      x1 = bytes left in the slice, x2 = where they go, x3 = room there.
// Out: x0 = bytes read, x1 = bytes written.
// Converts whole steps of 16 bytes while 32 bytes are left to read and 48 to write; the rest is the
// caller's. A step is stored as it is; then for each LF without a CR before it, CR is put in its
// place and the LF and what follows are stored again one byte further on. Those stores stay inside
// the 48 bytes; bytes past the count written are left with no meaning.
// The first LF of a step is handled without a branch: where there is none, the place found is just
// behind the step, is stored in vain and not counted. Line ends come too irregularly for a CPU to
// guess; a second one in a step is rarer.
// No stack, no call. Clobbers x0-x11, v0-v2, v4, v5.
    .section .text.caisson_lf_to_crlf_neon,"ax",%progbits
    .p2align 4
    .globl caisson_lf_to_crlf_neon
    .hidden caisson_lf_to_crlf_neon
    .type caisson_lf_to_crlf_neon,%function
caisson_lf_to_crlf_neon:
    .cfi_startproc
    mov x10, x0
    mov x11, x2
    subs x1, x1, #32
    b.lo 4f
    subs x3, x3, #48
    b.lo 4f
    add x1, x1, x0                  // the last place where a step may be read
    add x3, x3, x2                  // the last place where a step may be written
    movi v0.16b, #13
    movi v1.16b, #10
    mov w9, #13
1:  ldr q2, [x0]
    ldur q4, [x0, #-1]
    str q2, [x2]
    cmeq v2.16b, v2.16b, v1.16b
    cmeq v4.16b, v4.16b, v0.16b
    bic v2.16b, v2.16b, v4.16b      // LF here and no CR before it
    shrn v2.8b, v2.8h, #4
    fmov x5, d2
    and x5, x5, #0x1111111111111111 // one bit a byte, four apart
    rbit x6, x5
    clz x6, x6
    lsr x6, x6, #2                  // 16 where there is no LF
    ldr q5, [x0, x6]
    add x7, x2, x6
    strb w9, [x7]
    stur q5, [x7, #1]
    cmp x5, #0
    cinc x2, x2, ne                 // one byte more from here on
    sub x7, x5, #1
    ands x5, x5, x7
    b.eq 3f
2:  rbit x6, x5
    clz x6, x6
    lsr x6, x6, #2
    ldr q5, [x0, x6]
    add x7, x2, x6
    strb w9, [x7]
    stur q5, [x7, #1]
    add x2, x2, #1
    sub x7, x5, #1
    ands x5, x5, x7
    b.ne 2b
3:  add x0, x0, #16
    add x2, x2, #16
    cmp x0, x1
    b.hi 4f
    cmp x2, x3
    b.ls 1b
4:  sub x0, x0, x10
    sub x1, x2, x11
    ret
    .cfi_endproc
    .size caisson_lf_to_crlf_neon, . - caisson_lf_to_crlf_neon
    .text
