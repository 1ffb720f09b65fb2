// lf_to_crlf: the bulk of a text on its way out. Called from src/lf_to_crlf/x86_64.rs, nowhere else.
//
// In:  rdi = first byte to convert; the byte before it is readable and is the text's previous one.
//      rsi = bytes left in the slice, rdx = where they go, rcx = room there.
// Out: rax = bytes read, rdx = bytes written.
// Converts whole steps of W bytes while 2W bytes are left to read and 3W to write; the rest is the
// caller's. A step is stored as it is; then for each LF without a CR before it, CR is put in its
// place and the LF and what follows are stored again one byte further on. Those stores stay inside
// the 3W bytes; bytes past the count written are left with no meaning.
// The first LF of a step is handled without a branch: bit W of the mask stands for one just behind
// the step, which is what is found, stored in vain and not counted where there is no LF. Line ends
// come too irregularly for a CPU to guess; a second one in a step is rarer.
// No stack, no call. Clobbers rcx, rsi, rdi, r8-r11, vector registers 0-5.

// ---- SSE2 -------------------------------------------------------------------------------------
    .section .text.caisson_lf_to_crlf_sse2,"ax",@progbits
    .p2align 5
    .globl caisson_lf_to_crlf_sse2
    .hidden caisson_lf_to_crlf_sse2
    .type caisson_lf_to_crlf_sse2,@function
caisson_lf_to_crlf_sse2:
    .cfi_startproc
    mov r8, rdi
    mov r9, rdx
    sub rsi, 32
    jb 4f
    sub rcx, 48
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
    movdqu xmm4, [rdi - 1]
    movdqu [rdx], xmm2
    pcmpeqb xmm2, xmm1
    pcmpeqb xmm4, xmm0
    pandn xmm4, xmm2                // LF here and no CR before it
    pmovmskb eax, xmm4
    bts eax, 16
    tzcnt r10d, eax                 // never zero here, so older CPUs' bsf says the same
    movdqu xmm5, [rdi + r10]
    mov byte ptr [rdx + r10], 13
    movdqu [rdx + r10 + 1], xmm5
    lea r11d, [rax - 1]
    and eax, r11d                   // bit 16 is left where there was an LF
    mov r11d, eax
    shr r11d, 16
    add rdx, r11                    // one byte more from here on
    and eax, 0xffff
    jz 3f
2:  tzcnt r10d, eax
    movdqu xmm5, [rdi + r10]
    mov byte ptr [rdx + r10], 13
    movdqu [rdx + r10 + 1], xmm5
    inc rdx
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
    .size caisson_lf_to_crlf_sse2, . - caisson_lf_to_crlf_sse2

// ---- AVX2 -------------------------------------------------------------------------------------
    .section .text.caisson_lf_to_crlf_avx2,"ax",@progbits
    .p2align 5
    .globl caisson_lf_to_crlf_avx2
    .hidden caisson_lf_to_crlf_avx2
    .type caisson_lf_to_crlf_avx2,@function
caisson_lf_to_crlf_avx2:
    .cfi_startproc
    mov r8, rdi
    mov r9, rdx
    sub rsi, 64
    jb 4f
    sub rcx, 96
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
    vpcmpeqb ymm4, ymm0, [rdi - 1]
    vmovdqu [rdx], ymm2
    vpcmpeqb ymm2, ymm1, ymm2
    vpandn ymm4, ymm4, ymm2         // LF here and no CR before it
    vpmovmskb eax, ymm4
    bts rax, 32
    tzcnt r10, rax
    vmovdqu ymm5, [rdi + r10]
    mov byte ptr [rdx + r10], 13
    vmovdqu [rdx + r10 + 1], ymm5
    lea r11, [rax - 1]
    and rax, r11                    // bit 32 is left where there was an LF
    mov r11, rax
    shr r11, 32
    add rdx, r11                    // one byte more from here on
    test eax, eax
    jz 3f
2:  tzcnt r10d, eax
    vmovdqu ymm5, [rdi + r10]
    mov byte ptr [rdx + r10], 13
    vmovdqu [rdx + r10 + 1], ymm5
    inc rdx
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
    .size caisson_lf_to_crlf_avx2, . - caisson_lf_to_crlf_avx2
    .text
