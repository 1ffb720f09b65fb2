// crc32c: the CRC of RFC 3720 with the CPU's crc32 instruction. Called from src/crc32c/x86_64.rs,
// nowhere else, and only where SSE4.2 and PCLMULQDQ were found.
//
// In:  edi = CRC so far (as returned, 0 at the start), rsi = first byte, rdx = length in bytes.
// Out: eax = CRC.
// crc32 takes three cycles and one can begin each cycle, so long input is read as three strips side
// by side. A strip's CRC moves over the D bytes behind it by a carry-less product with
// x^(8D - 33) mod P; the odd 33 is the product's missing bit and the crc32 that reduces it.
// Reads the bytes of the slice and no other. No store, no stack, no call.
// Clobbers rcx, rdx, rsi, rdi, r8-r10, xmm0-xmm3.

// Consumes 3 * \strip bytes at rsi for as long as rdx holds as many. xmm3: low half moves over two
// strips, high half over one.
    .macro caisson_crc32c_strips strip
    cmp rdx, 3 * \strip
    jb 3f
    movdqa xmm3, [rip + .Lcaisson_crc32c_over_\strip]
    .p2align 4
1:  xor r8d, r8d
    xor r9d, r9d
    mov ecx, \strip / 16
2:  crc32 rax, qword ptr [rsi]
    crc32 r8, qword ptr [rsi + \strip]
    crc32 r9, qword ptr [rsi + 2 * \strip]
    crc32 rax, qword ptr [rsi + 8]
    crc32 r8, qword ptr [rsi + \strip + 8]
    crc32 r9, qword ptr [rsi + 2 * \strip + 8]
    add rsi, 16
    dec ecx
    jnz 2b
    movq xmm0, rax
    movq xmm1, r8
    pclmulqdq xmm0, xmm3, 0x00
    pclmulqdq xmm1, xmm3, 0x10
    pxor xmm0, xmm1
    movq r10, xmm0
    xor eax, eax
    crc32 rax, r10
    xor eax, r9d
    add rsi, 2 * \strip
    sub rdx, 3 * \strip
    cmp rdx, 3 * \strip
    jae 1b
3:
    .endm

    .section .text.caisson_crc32c_sse42,"ax",@progbits
    .p2align 5
    .globl caisson_crc32c_sse42
    .hidden caisson_crc32c_sse42
    .type caisson_crc32c_sse42,@function
caisson_crc32c_sse42:
    .cfi_startproc
    mov eax, edi
    not eax
    caisson_crc32c_strips 2048
    caisson_crc32c_strips 256
    sub rdx, 8
    jb 5f
4:  crc32 rax, qword ptr [rsi]
    add rsi, 8
    sub rdx, 8
    jae 4b
5:  test dl, 4                      // rdx is the rest minus 8: its low three bits are the rest's
    jz 6f
    crc32 eax, dword ptr [rsi]
    add rsi, 4
6:  test dl, 2
    jz 7f
    crc32 eax, word ptr [rsi]
    add rsi, 2
7:  test dl, 1
    jz 8f
    crc32 eax, byte ptr [rsi]
8:  not eax
    ret
    .cfi_endproc
    .size caisson_crc32c_sse42, . - caisson_crc32c_sse42
    .purgem caisson_crc32c_strips

    .section .rodata.caisson_crc32c,"a",@progbits
    .p2align 4
.Lcaisson_crc32c_over_2048:
    .quad 0x82f89c77, 0xa51b6135    // x^(8*4096 - 33), x^(8*2048 - 33) mod P, bits reversed
.Lcaisson_crc32c_over_256:
    .quad 0xdd7e3b0c, 0xb9e02b86    // x^(8*512 - 33), x^(8*256 - 33) mod P, bits reversed
    .text
