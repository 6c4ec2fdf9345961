// Entry points that are left to the driver and counted (hooks.tsv: count): a stub per symbol, which needs no signature,
// since it passes on every register and the stack as they came.
#ifndef __x86_64__
#error "the shim is written for x86-64"
#endif

	.text
	.p2align 4
	.type count_and_go_on, @function
// eax: the symbol's row.
count_and_go_on:
	.cfi_startproc
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	pushq %rcx
	.cfi_adjust_cfa_offset 8
	pushq %r8
	.cfi_adjust_cfa_offset 8
	pushq %r9
	.cfi_adjust_cfa_offset 8
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	movl %eax, %edi
	call fairlead_count_call
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %r9
	.cfi_adjust_cfa_offset -8
	popq %r8
	.cfi_adjust_cfa_offset -8
	popq %rcx
	.cfi_adjust_cfa_offset -8
	popq %rdx
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	jmp *%rax
	.cfi_endproc
	.size count_and_go_on, . - count_and_go_on

	.set row, 0
#define SYMBOL_hook(symbol)
#define SYMBOL_pass(symbol)
#define SYMBOL_count(symbol) \
	.globl symbol ; .type symbol, @function ; symbol: endbr64 ; movl $row, %eax ; jmp count_and_go_on ; \
	.size symbol, . - symbol ;
#define SYMBOL(name, symbol, decision) SYMBOL_##decision(symbol) .set row, row + 1
#include "shim_symbols.inc"

	.section .note.GNU-stack, "", @progbits
