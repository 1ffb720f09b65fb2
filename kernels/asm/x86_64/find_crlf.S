// find_crlf: where CR LF first occurs. Called from src/find_crlf/x86_64.rs, nowhere else.
//
// In:  rdi = first byte of the slice, rsi = the number of places a pair can begin (length - 1).
// Out: rax = index of the CR of the first pair; rsi or more when there is none.
// Each step compares one load with CR and the load one byte further on with LF. Reads the rsi + 1
// bytes of the slice and no other. No store, no stack, no call.
// Clobbers rcx, rdx, r8, r9, xmm0-xmm5, xmm7.

// ---- SSE2: any length -------------------------------------------------------------------------
    .section .text.caisson_find_crlf_sse2,"ax",@progbits
    .p2align 5
    .globl caisson_find_crlf_sse2
    .hidden caisson_find_crlf_sse2
    .type caisson_find_crlf_sse2,@function
caisson_find_crlf_sse2:
    .cfi_startproc
    xor eax, eax
    cmp rsi, 8
    jb 4f
    mov ecx, 0x0d0d0d0d
    movd xmm0, ecx
    pshufd xmm0, xmm0, 0
    mov ecx, 0x0a0a0a0a
    movd xmm7, ecx
    pshufd xmm7, xmm7, 0
    cmp rsi, 16
    jb 3f
    lea rcx, [rsi - 16]             // where the last step begins
    cmp rax, rcx
    jae 2f
1:  movdqu xmm1, [rdi + rax]
    movdqu xmm2, [rdi + rax + 1]
    pcmpeqb xmm1, xmm0
    pcmpeqb xmm2, xmm7
    pand xmm1, xmm2
    pmovmskb r8d, xmm1
    test r8d, r8d
    jnz 5f
    add rax, 16
    cmp rax, rcx
    jb 1b
2:  mov rax, rcx
    movdqu xmm1, [rdi + rax]
    movdqu xmm2, [rdi + rax + 1]
    pcmpeqb xmm1, xmm0
    pcmpeqb xmm2, xmm7
    pand xmm1, xmm2
    pmovmskb r8d, xmm1
    bts r8d, 16                     // a match just past the end: none
5:  tzcnt r8d, r8d                  // never zero here, so older CPUs' bsf says the same
    add rax, r8
    ret
3:  movq xmm1, [rdi]                // 8 to 15 places: two halves that overlap
    movq xmm2, [rdi + 1]
    movq xmm3, [rdi + rsi - 8]
    movq xmm4, [rdi + rsi - 7]
    pcmpeqb xmm1, xmm0
    pcmpeqb xmm2, xmm7
    pcmpeqb xmm3, xmm0
    pcmpeqb xmm4, xmm7
    pand xmm1, xmm2
    pand xmm3, xmm4
    pmovmskb eax, xmm1
    pmovmskb r8d, xmm3
    lea ecx, [rsi - 8]
    shl r8d, cl
    or eax, r8d
    bts eax, esi
    tzcnt eax, eax
    ret
4:  cmp rax, rsi                    // 0 to 7 places
    jae 6f
    cmp word ptr [rdi + rax], 0x0a0d
    je 6f
    inc rax
    jmp 4b
6:  ret
    .cfi_endproc
    .size caisson_find_crlf_sse2, . - caisson_find_crlf_sse2

// ---- AVX2: 32 places or more ------------------------------------------------------------------
    .section .text.caisson_find_crlf_avx2,"ax",@progbits
    .p2align 5
    .globl caisson_find_crlf_avx2
    .hidden caisson_find_crlf_avx2
    .type caisson_find_crlf_avx2,@function
caisson_find_crlf_avx2:
    .cfi_startproc
    mov ecx, 0x0d0d0d0d
    vmovd xmm0, ecx
    vpbroadcastd ymm0, xmm0
    mov ecx, 0x0a0a0a0a
    vmovd xmm7, ecx
    vpbroadcastd ymm7, xmm7
    xor eax, eax
    cmp rsi, 64
    jb 3f
    lea rcx, [rsi - 64]
    .p2align 5
1:  vpcmpeqb ymm1, ymm0, [rdi + rax]
    vpcmpeqb ymm2, ymm7, [rdi + rax + 1]
    vpcmpeqb ymm3, ymm0, [rdi + rax + 32]
    vpcmpeqb ymm4, ymm7, [rdi + rax + 33]
    vpand ymm1, ymm1, ymm2
    vpand ymm3, ymm3, ymm4
    vpor ymm5, ymm1, ymm3
    vpmovmskb r8d, ymm5
    test r8d, r8d
    jnz 2f
    add rax, 64
    cmp rax, rcx
    jbe 1b
    jmp 3f
2:  vpmovmskb r8d, ymm1             // which of the two
    vpmovmskb r9d, ymm3
    shl r9, 32
    or r8, r9
    jmp 5f
3:  lea rcx, [rsi - 32]
    cmp rax, rcx
    jae 4f
    vpcmpeqb ymm1, ymm0, [rdi + rax]
    vpcmpeqb ymm2, ymm7, [rdi + rax + 1]
    vpand ymm1, ymm1, ymm2
    vpmovmskb r8d, ymm1
    test r8d, r8d
    jnz 5f
    add rax, 32
    jmp 3b
4:  mov rax, rcx
    vpcmpeqb ymm1, ymm0, [rdi + rax]
    vpcmpeqb ymm2, ymm7, [rdi + rax + 1]
    vpand ymm1, ymm1, ymm2
    vpmovmskb r8d, ymm1
    bts r8, 32                      // a match just past the end: none
5:  tzcnt r8, r8
    add rax, r8
    vzeroupper
    ret
    .cfi_endproc
    .size caisson_find_crlf_avx2, . - caisson_find_crlf_avx2
    .text
