// adler32: the two sums of RFC 1950 over one block, before the modulo. Called from
// src/adler32/x86_64.rs, nowhere else, and only where AVX2 was found.
//
// In:  rdi = first byte, rsi = length n in bytes: a multiple of 64, 64 to 5760.
// Out: rax = (sum of (n - i) * byte[i]) << 32 | sum of byte[i], for i from 0 to n - 1.
// 5760 is the largest multiple of 64 for which the weighted sum, at most 255 * n * (n + 1) / 2,
// stays below 2^32. Reads the bytes of the slice and no other. No store, no stack, no call.
// Clobbers rcx, rdi, rsi, ymm0-ymm9.
    .section .text.caisson_adler32_avx2,"ax",@progbits
    .p2align 5
    .globl caisson_adler32_avx2
    .hidden caisson_adler32_avx2
    .type caisson_adler32_avx2,@function
caisson_adler32_avx2:
    .cfi_startproc
    vpxor xmm0, xmm0, xmm0          // ymm0: plain sum, 4 lanes of 64 bits
    vpxor xmm1, xmm1, xmm1          // ymm1: the plain sums before each step, added up
    vpxor xmm2, xmm2, xmm2          // ymm2: weighted sum within the steps, 8 lanes of 32 bits
    vpxor xmm3, xmm3, xmm3
    vpcmpeqw ymm4, ymm4, ymm4
    vpsrlw ymm4, ymm4, 15           // sixteen ones
    vmovdqa ymm5, [rip + .Lcaisson_adler32_weights]
    vmovdqa ymm6, [rip + .Lcaisson_adler32_weights + 32]
1:  vmovdqu ymm7, [rdi]
    vmovdqu ymm8, [rdi + 32]
    vpaddd ymm1, ymm1, ymm0
    vpsadbw ymm9, ymm7, ymm3
    vpaddd ymm0, ymm0, ymm9
    vpsadbw ymm9, ymm8, ymm3
    vpaddd ymm0, ymm0, ymm9
    vpmaddubsw ymm7, ymm7, ymm5     // at most 255 * (64 + 63): fits a signed word
    vpmaddubsw ymm8, ymm8, ymm6
    vpmaddwd ymm7, ymm7, ymm4
    vpmaddwd ymm8, ymm8, ymm4
    vpaddd ymm2, ymm2, ymm7
    vpaddd ymm2, ymm2, ymm8
    add rdi, 64
    sub rsi, 64
    jnz 1b
    vpslld ymm1, ymm1, 6            // what came before a step counts 64 times more after it
    vpaddd ymm2, ymm2, ymm1
    vextracti128 xmm7, ymm0, 1
    vpaddd xmm0, xmm0, xmm7
    vpshufd xmm7, xmm0, 0x4e
    vpaddd xmm0, xmm0, xmm7
    vextracti128 xmm7, ymm2, 1
    vpaddd xmm2, xmm2, xmm7
    vpshufd xmm7, xmm2, 0x4e
    vpaddd xmm2, xmm2, xmm7
    vpshufd xmm7, xmm2, 0xb1
    vpaddd xmm2, xmm2, xmm7
    vmovd ecx, xmm0
    vmovd eax, xmm2
    shl rax, 32
    or rax, rcx
    vzeroupper
    ret
    .cfi_endproc
    .size caisson_adler32_avx2, . - caisson_adler32_avx2

    .section .rodata.caisson_adler32,"a",@progbits
    .p2align 5
.Lcaisson_adler32_weights:
    .byte 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49
    .byte 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33
    .byte 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17
    .byte 16, 15, 14, 13, 12, 11, 10,  9,  8,  7,  6,  5,  4,  3,  2,  1
    .text
