// crlf_to_lf: the bulk of a text on its way in. Called from src/crlf_to_lf/x86_64.rs, nowhere else.
//
// In:  rdi = first byte to convert, rsi = bytes left in the slice, rdx = where they go,
//      rcx = room there.
// Out: rax = bytes read, rdx = bytes written.
// Converts whole steps of W bytes while 2W + 1 bytes are left to read and 2W to write; the rest is
// the caller's. A step is stored as it is; then for each CR with an LF behind it, what follows the
// CR is stored again in its place. Those stores stay inside the 2W bytes; bytes past the count
// written are left with no meaning.
// The first CR of a step is handled without a branch: bit W of the mask stands for one just behind
// the step, which is what is found, stored in vain and not counted where there is no CR. Line ends
// come too irregularly for a CPU to guess; a second one in a step is rarer.
// No stack, no call. Clobbers rcx, rsi, rdi, r8-r11, vector registers 0-5.

// ---- SSE2 -------------------------------------------------------------------------------------
    .section .text.caisson_crlf_to_lf_sse2,"ax",@progbits
    .p2align 5
    .globl caisson_crlf_to_lf_sse2
    .hidden caisson_crlf_to_lf_sse2
    .type caisson_crlf_to_lf_sse2,@function
caisson_crlf_to_lf_sse2:
    .cfi_startproc
    mov r8, rdi
    mov r9, rdx
    sub rsi, 33
    jb 4f
    sub rcx, 32
    jb 4f
    add rsi, rdi                    // the last place where a step may be read
    add rcx, rdx                    // the last place where a step may be written
    mov eax, 0x0d0d0d0d
    movd xmm0, eax
    pshufd xmm0, xmm0, 0
    mov eax, 0x0a0a0a0a
    movd xmm1, eax
    pshufd xmm1, xmm1, 0
    .p2align 4
1:  movdqu xmm2, [rdi]
    movdqu xmm4, [rdi + 1]
    movdqu [rdx], xmm2
    pcmpeqb xmm2, xmm0
    pcmpeqb xmm4, xmm1
    pand xmm4, xmm2                 // CR here and LF behind it
    pmovmskb eax, xmm4
    bts eax, 16
    tzcnt r10d, eax                 // never zero here, so older CPUs' bsf says the same
    movdqu xmm5, [rdi + r10 + 1]
    movdqu [rdx + r10], xmm5
    lea r11d, [rax - 1]
    and eax, r11d                   // bit 16 is left where there was a CR
    mov r11d, eax
    shr r11d, 16
    sub rdx, r11                    // one byte less from here on
    and eax, 0xffff
    jz 3f
2:  tzcnt r10d, eax
    movdqu xmm5, [rdi + r10 + 1]
    movdqu [rdx + r10], xmm5
    dec rdx
    lea r11d, [rax - 1]
    and eax, r11d
    jnz 2b
3:  add rdi, 16
    add rdx, 16
    cmp rdi, rsi
    ja 4f
    cmp rdx, rcx
    jbe 1b
4:  mov rax, rdi
    sub rax, r8
    sub rdx, r9
    ret
    .cfi_endproc
    .size caisson_crlf_to_lf_sse2, . - caisson_crlf_to_lf_sse2

// ---- AVX2 -------------------------------------------------------------------------------------
    .section .text.caisson_crlf_to_lf_avx2,"ax",@progbits
    .p2align 5
    .globl caisson_crlf_to_lf_avx2
    .hidden caisson_crlf_to_lf_avx2
    .type caisson_crlf_to_lf_avx2,@function
caisson_crlf_to_lf_avx2:
    .cfi_startproc
    mov r8, rdi
    mov r9, rdx
    sub rsi, 65
    jb 4f
    sub rcx, 64
    jb 4f
    add rsi, rdi                    // the last place where a step may be read
    add rcx, rdx                    // the last place where a step may be written
    mov eax, 0x0d0d0d0d
    vmovd xmm0, eax
    vpbroadcastd ymm0, xmm0
    mov eax, 0x0a0a0a0a
    vmovd xmm1, eax
    vpbroadcastd ymm1, xmm1
    .p2align 4
1:  vmovdqu ymm2, [rdi]
    vpcmpeqb ymm4, ymm1, [rdi + 1]
    vmovdqu [rdx], ymm2
    vpcmpeqb ymm2, ymm0, ymm2
    vpand ymm4, ymm4, ymm2          // CR here and LF behind it
    vpmovmskb eax, ymm4
    bts rax, 32
    tzcnt r10, rax
    vmovdqu ymm5, [rdi + r10 + 1]
    vmovdqu [rdx + r10], ymm5
    lea r11, [rax - 1]
    and rax, r11                    // bit 32 is left where there was a CR
    mov r11, rax
    shr r11, 32
    sub rdx, r11                    // one byte less from here on
    test eax, eax
    jz 3f
2:  tzcnt r10d, eax
    vmovdqu ymm5, [rdi + r10 + 1]
    vmovdqu [rdx + r10], ymm5
    dec rdx
    lea r11d, [rax - 1]
    and eax, r11d
    jnz 2b
3:  add rdi, 32
    add rdx, 32
    cmp rdi, rsi
    ja 4f
    cmp rdx, rcx
    jbe 1b
4:  mov rax, rdi
    sub rax, r8
    sub rdx, r9
    vzeroupper
    ret
    .cfi_endproc
    .size caisson_crlf_to_lf_avx2, . - caisson_crlf_to_lf_avx2
    .text
