// find_byte: where a byte first occurs. Called from src/find_byte/x86_64.rs, nowhere else.
//
// In:  rdi = first byte of the slice, rsi = its length in bytes, dl = the byte looked for.
// Out: rax = index of the first match; rsi or more when there is none.
// Reads the bytes of the slice and no other: the last step overlaps the one before it instead of
// running past the end. No store, no stack, no call. Clobbers rcx, r8, r9, xmm0-xmm6.

// ---- SSE2: any length -------------------------------------------------------------------------
    .section .text.caisson_find_byte_sse2,"ax",@progbits
    .p2align 5
    .globl caisson_find_byte_sse2
    .hidden caisson_find_byte_sse2
    .type caisson_find_byte_sse2,@function
caisson_find_byte_sse2:
    .cfi_startproc
    movd xmm0, edx
    punpcklbw xmm0, xmm0
    pshuflw xmm0, xmm0, 0
    punpcklqdq xmm0, xmm0
    xor eax, eax
    cmp rsi, 16
    jb 3f
    lea rcx, [rsi - 16]             // where the last step begins
    cmp rax, rcx
    jae 2f
1:  movdqu xmm1, [rdi + rax]
    pcmpeqb xmm1, xmm0
    pmovmskb r8d, xmm1
    test r8d, r8d
    jnz 5f
    add rax, 16
    cmp rax, rcx
    jb 1b
2:  mov rax, rcx
    movdqu xmm1, [rdi + rax]
    pcmpeqb xmm1, xmm0
    pmovmskb r8d, xmm1
    bts r8d, 16                     // a match just past the end: none
5:  tzcnt r8d, r8d                  // never zero here, so older CPUs' bsf says the same
    add rax, r8
    ret
3:  cmp rsi, 8                      // 8 to 15 bytes: two halves that overlap
    jb 4f
    movq xmm1, [rdi]
    movq xmm2, [rdi + rsi - 8]
    pcmpeqb xmm1, xmm0
    pcmpeqb xmm2, xmm0
    pmovmskb eax, xmm1
    pmovmskb r8d, xmm2
    movzx eax, al                   // movq filled the upper half with zeros, which may match;
    lea ecx, [rsi - 8]
    shl r8d, cl                     // of the second half's, these end up past the end
    or eax, r8d
    bts eax, esi
    tzcnt eax, eax
    ret
4:  cmp rax, rsi                    // 0 to 7 bytes
    jae 6f
    cmp [rdi + rax], dl
    je 6f
    inc rax
    jmp 4b
6:  ret
    .cfi_endproc
    .size caisson_find_byte_sse2, . - caisson_find_byte_sse2

// ---- AVX2: 32 bytes or more -------------------------------------------------------------------
    .section .text.caisson_find_byte_avx2,"ax",@progbits
    .p2align 5
    .globl caisson_find_byte_avx2
    .hidden caisson_find_byte_avx2
    .type caisson_find_byte_avx2,@function
caisson_find_byte_avx2:
    .cfi_startproc
    vmovd xmm0, edx
    vpbroadcastb ymm0, xmm0
    xor eax, eax
    cmp rsi, 128
    jb 3f
    lea rcx, [rsi - 128]
    .p2align 5
1:  vpcmpeqb ymm1, ymm0, [rdi + rax]
    vpcmpeqb ymm2, ymm0, [rdi + rax + 32]
    vpcmpeqb ymm3, ymm0, [rdi + rax + 64]
    vpcmpeqb ymm4, ymm0, [rdi + rax + 96]
    vpor ymm5, ymm1, ymm2
    vpor ymm6, ymm3, ymm4
    vpor ymm6, ymm6, ymm5
    vpmovmskb r8d, ymm6
    test r8d, r8d
    jnz 2f
    sub rax, -128
    cmp rax, rcx
    jbe 1b
    jmp 3f
2:  vpmovmskb r8d, ymm1             // which of the four
    vpmovmskb r9d, ymm2
    shl r9, 32
    or r8, r9
    jnz 5f
    add rax, 64
    vpmovmskb r8d, ymm3
    vpmovmskb r9d, ymm4
    shl r9, 32
    or r8, r9
    jmp 5f
3:  lea rcx, [rsi - 32]
    cmp rax, rcx
    jae 4f
    vpcmpeqb ymm1, ymm0, [rdi + rax]
    vpmovmskb r8d, ymm1
    test r8d, r8d
    jnz 5f
    add rax, 32
    jmp 3b
4:  mov rax, rcx
    vpcmpeqb ymm1, ymm0, [rdi + rax]
    vpmovmskb r8d, ymm1
    bts r8, 32                      // a match just past the end: none
5:  tzcnt r8, r8
    add rax, r8
    vzeroupper
    ret
    .cfi_endproc
    .size caisson_find_byte_avx2, . - caisson_find_byte_avx2
    .text
