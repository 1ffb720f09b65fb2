// find_crlf: where CR LF first occurs. Called from src/find_crlf/aarch64.rs, nowhere else.
//
// In:  x0 = first byte of the slice, x1 = the number of places a pair can begin (length - 1).
// Out: x0 = index of the CR of the first pair; x1 as given when there is none.
// Each step compares one load with CR and the load one byte further on with LF. Reads the x1 + 1
// bytes of the slice and no other. No store, no stack, no call. Clobbers x3-x6, v0-v3.
    .section .text.caisson_find_crlf_neon,"ax",%progbits
    .p2align 4
    .globl caisson_find_crlf_neon
    .hidden caisson_find_crlf_neon
    .type caisson_find_crlf_neon,%function
caisson_find_crlf_neon:
    .cfi_startproc
    movi v0.16b, #13
    movi v1.16b, #10
    mov x4, #0
    cmp x1, #16
    b.lo 3f
    sub x3, x1, #16                 // where the last step begins
    cbz x3, 2f
1:  add x6, x0, x4
    ldr q2, [x6]
    ldur q3, [x6, #1]
    cmeq v2.16b, v2.16b, v0.16b
    cmeq v3.16b, v3.16b, v1.16b
    and v2.16b, v2.16b, v3.16b
    shrn v2.8b, v2.8h, #4           // four bits a byte
    fmov x5, d2
    cbnz x5, 5f
    add x4, x4, #16
    cmp x4, x3
    b.lo 1b
2:  mov x4, x3
    add x6, x0, x4
    ldr q2, [x6]
    ldur q3, [x6, #1]
    cmeq v2.16b, v2.16b, v0.16b
    cmeq v3.16b, v3.16b, v1.16b
    and v2.16b, v2.16b, v3.16b
    shrn v2.8b, v2.8h, #4
    fmov x5, d2
    cbz x5, 7f
5:  rbit x5, x5
    clz x5, x5
    add x0, x4, x5, lsr #2
    ret
3:  cmp x1, #8                      // 8 to 15 places: two halves that overlap
    b.lo 4f
    ldr d2, [x0]
    ldur d3, [x0, #1]
    cmeq v2.8b, v2.8b, v0.8b
    cmeq v3.8b, v3.8b, v1.8b
    and v2.8b, v2.8b, v3.8b
    fmov x5, d2
    cbnz x5, 6f
    sub x4, x1, #8
    add x6, x0, x4
    ldr d2, [x6]
    ldur d3, [x6, #1]
    cmeq v2.8b, v2.8b, v0.8b
    cmeq v3.8b, v3.8b, v1.8b
    and v2.8b, v2.8b, v3.8b
    fmov x5, d2
    cbz x5, 7f
6:  rbit x5, x5
    clz x5, x5
    add x0, x4, x5, lsr #3
    ret
4:  cmp x4, x1                      // 0 to 7 places
    b.hs 7f
    add x6, x0, x4
    ldrb w5, [x6]
    ldrb w6, [x6, #1]
    cmp w5, #13
    ccmp w6, #10, #0, eq
    b.eq 8f
    add x4, x4, #1
    b 4b
7:  mov x0, x1
    ret
8:  mov x0, x4
    ret
    .cfi_endproc
    .size caisson_find_crlf_neon, . - caisson_find_crlf_neon
    .text
