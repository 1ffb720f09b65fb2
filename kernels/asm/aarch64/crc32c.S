// crc32c: the CRC of RFC 3720 with the CPU's crc32cx instruction. Called from
// src/crc32c/aarch64.rs, nowhere else, and only where the CRC and PMULL extensions were found.
//
// In:  w0 = CRC so far (as returned, 0 at the start), x1 = first byte, x2 = length in bytes.
// Out: w0 = CRC.
// crc32cx takes a few cycles and one can begin each cycle, so long input is read as three strips
// side by side. A strip's CRC moves over the D bytes behind it by a carry-less product with
// x^(8D - 33) mod P; the odd 33 is the product's missing bit and the crc32cx that reduces it.
// Reads the bytes of the slice and no other. No store, no stack, no call.
// Clobbers x1, x2, x5-x17, v0, v1, v3, v4.
    .arch_extension crc
    .arch_extension aes

// Consumes 3 * \strip bytes at x1 for as long as x2 holds as many. d3 moves over two strips, d4
// over one.
    .macro caisson_crc32c_strips strip
    mov x9, #3 * \strip
    cmp x2, x9
    b.lo 3f
    adrp x10, .Lcaisson_crc32c_over_\strip
    add x10, x10, :lo12:.Lcaisson_crc32c_over_\strip
    ldp d3, d4, [x10]
1:  add x5, x1, #\strip
    add x6, x5, #\strip
    mov w7, wzr
    mov w8, wzr
    mov w11, #\strip / 16
2:  ldp x12, x13, [x1], #16
    ldp x14, x15, [x5], #16
    ldp x16, x17, [x6], #16
    crc32cx w0, w0, x12
    crc32cx w7, w7, x14
    crc32cx w8, w8, x16
    crc32cx w0, w0, x13
    crc32cx w7, w7, x15
    crc32cx w8, w8, x17
    subs w11, w11, #1
    b.ne 2b
    fmov d0, x0
    fmov d1, x7
    pmull v0.1q, v0.1d, v3.1d
    pmull v1.1q, v1.1d, v4.1d
    eor v0.16b, v0.16b, v1.16b
    fmov x12, d0
    crc32cx w0, wzr, x12
    eor w0, w0, w8
    mov x1, x6
    sub x2, x2, x9
    cmp x2, x9
    b.hs 1b
3:
    .endm

    .section .text.caisson_crc32c_crc,"ax",%progbits
    .p2align 4
    .globl caisson_crc32c_crc
    .hidden caisson_crc32c_crc
    .type caisson_crc32c_crc,%function
caisson_crc32c_crc:
    .cfi_startproc
    mvn w0, w0
    caisson_crc32c_strips 2048
    caisson_crc32c_strips 256
    subs x2, x2, #8
    b.lo 5f
4:  ldr x12, [x1], #8
    crc32cx w0, w0, x12
    subs x2, x2, #8
    b.hs 4b
5:  tbz x2, #2, 6f                  // x2 is the rest minus 8: its low three bits are the rest's
    ldr w12, [x1], #4
    crc32cw w0, w0, w12
6:  tbz x2, #1, 7f
    ldrh w12, [x1], #2
    crc32ch w0, w0, w12
7:  tbz x2, #0, 8f
    ldrb w12, [x1]
    crc32cb w0, w0, w12
8:  mvn w0, w0
    ret
    .cfi_endproc
    .size caisson_crc32c_crc, . - caisson_crc32c_crc
    .purgem caisson_crc32c_strips

    .section .rodata.caisson_crc32c,"a",%progbits
    .p2align 4
.Lcaisson_crc32c_over_2048:
    .quad 0x82f89c77, 0xa51b6135    // x^(8*4096 - 33), x^(8*2048 - 33) mod P, bits reversed
.Lcaisson_crc32c_over_256:
    .quad 0xdd7e3b0c, 0xb9e02b86    // x^(8*512 - 33), x^(8*256 - 33) mod P, bits reversed
    .text
