// find_byte: where a byte first occurs. Called from src/find_byte/aarch64.rs, nowhere else.
//
// In:  x0 = first byte of the slice, x1 = its length in bytes, w2 = the byte looked for.
// Out: x0 = index of the first match; x1 as given when there is none.
// Reads the bytes of the slice and no other: the last step overlaps the one before it instead of
// running past the end. No store, no stack, no call. Clobbers x3-x5, v0, v1.
    .section .text.caisson_find_byte_neon,"ax",%progbits
    .p2align 4
    .globl caisson_find_byte_neon
    .hidden caisson_find_byte_neon
    .type caisson_find_byte_neon,%function
caisson_find_byte_neon:
    .cfi_startproc
    dup v0.16b, w2
    mov x4, #0
    cmp x1, #16
    b.lo 3f
    sub x3, x1, #16                 // where the last step begins
    cbz x3, 2f
1:  ldr q1, [x0, x4]
    cmeq v1.16b, v1.16b, v0.16b
    shrn v1.8b, v1.8h, #4           // four bits a byte
    fmov x5, d1
    cbnz x5, 5f
    add x4, x4, #16
    cmp x4, x3
    b.lo 1b
2:  mov x4, x3
    ldr q1, [x0, x4]
    cmeq v1.16b, v1.16b, v0.16b
    shrn v1.8b, v1.8h, #4
    fmov x5, d1
    cbz x5, 7f
5:  rbit x5, x5
    clz x5, x5
    add x0, x4, x5, lsr #2
    ret
3:  cmp x1, #8                      // 8 to 15 bytes: two halves that overlap
    b.lo 4f
    ldr d1, [x0]
    cmeq v1.8b, v1.8b, v0.8b
    fmov x5, d1
    cbnz x5, 6f
    sub x4, x1, #8
    ldr d1, [x0, x4]
    cmeq v1.8b, v1.8b, v0.8b
    fmov x5, d1
    cbz x5, 7f
6:  rbit x5, x5
    clz x5, x5
    add x0, x4, x5, lsr #3
    ret
4:  cmp x4, x1                      // 0 to 7 bytes
    b.hs 7f
    ldrb w5, [x0, x4]
    cmp w5, w2
    b.eq 8f
    add x4, x4, #1
    b 4b
7:  mov x0, x1
    ret
8:  mov x0, x4
    ret
    .cfi_endproc
    .size caisson_find_byte_neon, . - caisson_find_byte_neon
    .text
