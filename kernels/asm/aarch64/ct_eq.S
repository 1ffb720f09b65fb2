// ct_eq: are two byte strings of one length equal? Called from src/ct_eq/aarch64.rs, nowhere else.
//
// In:  x0, x1 = first bytes of the two slices, x2 = the length of both.
// Out: w0 = 1 when every byte agrees, 0 when not.
// Every branch and every address depends on the length alone. Each byte is read whatever the bytes
// before it were, and the differences meet in one OR that is looked at once, by cset.
// Reads the bytes of the slices and no other. No store, no stack, no call.
// Clobbers x3-x7, v0-v2.
    .section .text.caisson_ct_eq_neon,"ax",%progbits
    .p2align 4
    .globl caisson_ct_eq_neon
    .hidden caisson_ct_eq_neon
    .type caisson_ct_eq_neon,%function
caisson_ct_eq_neon:
    .cfi_startproc
    cmp x2, #16
    b.lo 2f
    movi v0.16b, #0
    sub x3, x2, #16                 // where the last step begins; it may overlap the one before
    mov x4, #0
1:  ldr q1, [x0, x4]
    ldr q2, [x1, x4]
    eor v1.16b, v1.16b, v2.16b
    orr v0.16b, v0.16b, v1.16b
    add x4, x4, #16
    cmp x4, x3
    b.lo 1b
    ldr q1, [x0, x3]
    ldr q2, [x1, x3]
    eor v1.16b, v1.16b, v2.16b
    orr v0.16b, v0.16b, v1.16b
    umaxv b0, v0.16b
    fmov w5, s0
    cmp w5, #0
    cset w0, eq
    ret
2:  mov x5, #0
    cmp x2, #8
    b.lo 3f
    sub x3, x2, #8                  // 8 to 15 bytes: two halves that overlap
    ldr x4, [x0]
    ldr x5, [x1]
    ldr x6, [x0, x3]
    ldr x7, [x1, x3]
    eor x4, x4, x5
    eor x6, x6, x7
    orr x5, x4, x6
    b 5f
3:  mov x4, #0                      // 0 to 7 bytes
4:  cmp x4, x2
    b.hs 5f
    ldrb w6, [x0, x4]
    ldrb w7, [x1, x4]
    eor w6, w6, w7
    orr w5, w5, w6
    add x4, x4, #1
    b 4b
5:  cmp x5, #0
    cset w0, eq
    ret
    .cfi_endproc
    .size caisson_ct_eq_neon, . - caisson_ct_eq_neon
    .text
