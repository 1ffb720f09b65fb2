// ct_eq: are two byte strings of one length equal? Called from src/ct_eq/x86_64.rs, nowhere else.
//
// In:  rdi, rsi = first bytes of the two slices, rdx = the length of both.
// Out: eax = 1 when every byte agrees, 0 when not.
// Every branch and every address depends on the length alone. Each byte is read whatever the bytes
// before it were, and the differences meet in one OR that is looked at once, by setcc.
// Reads the bytes of the slices and no other. No store, no stack, no call.
// Clobbers rcx, r8, r9, xmm0-xmm2.
    .section .text.caisson_ct_eq_sse2,"ax",@progbits
    .p2align 5
    .globl caisson_ct_eq_sse2
    .hidden caisson_ct_eq_sse2
    .type caisson_ct_eq_sse2,@function
caisson_ct_eq_sse2:
    .cfi_startproc
    cmp rdx, 16
    jb 2f
    pxor xmm0, xmm0
    lea rcx, [rdx - 16]             // where the last step begins; it may overlap the one before
    xor eax, eax
1:  movdqu xmm1, [rdi + rax]
    movdqu xmm2, [rsi + rax]
    pxor xmm1, xmm2
    por xmm0, xmm1
    add rax, 16
    cmp rax, rcx
    jb 1b
    movdqu xmm1, [rdi + rcx]
    movdqu xmm2, [rsi + rcx]
    pxor xmm1, xmm2
    por xmm0, xmm1
    pxor xmm1, xmm1
    pcmpeqb xmm0, xmm1
    pmovmskb ecx, xmm0
    xor eax, eax
    cmp ecx, 0xffff
    sete al
    ret
2:  xor r8d, r8d
    cmp rdx, 8
    jb 3f
    mov r8, [rdi]                   // 8 to 15 bytes: two halves that overlap
    xor r8, [rsi]
    mov r9, [rdi + rdx - 8]
    xor r9, [rsi + rdx - 8]
    or r8, r9
    jmp 5f
3:  xor eax, eax                    // 0 to 7 bytes
4:  cmp rax, rdx
    jae 5f
    mov cl, [rdi + rax]
    xor cl, [rsi + rax]
    or r8b, cl
    inc rax
    jmp 4b
5:  xor eax, eax
    test r8, r8
    sete al
    ret
    .cfi_endproc
    .size caisson_ct_eq_sse2, . - caisson_ct_eq_sse2
    .text
