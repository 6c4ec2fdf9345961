// dlsym, in both versions that glibc has had. With RTLD_DEFAULT (0) and RTLD_NEXT (-1) libc looks at the address its
// caller returns to, to know from where on to search; so for those two this is a jump, and libc sees the program's own
// call. What it finds needs no exchange then: our hooks are in that search themselves.
#ifndef __x86_64__
#error "the shim is written for x86-64"
#endif

	.text
	.p2align 4
	.globl fairlead_dlsym, fairlead_dlsym_2_2_5, fairlead_dlsym_2_34
	.hidden fairlead_dlsym
	.type fairlead_dlsym, @function
	.type fairlead_dlsym_2_2_5, @function
	.type fairlead_dlsym_2_34, @function
fairlead_dlsym:
fairlead_dlsym_2_2_5:
fairlead_dlsym_2_34:
	.cfi_startproc
	endbr64
	leaq 1(%rdi), %rax
	cmpq $1, %rax
	ja fairlead_dlsym_in
	pushq %rdi
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	call fairlead_real_dlsym
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %rsi
	.cfi_adjust_cfa_offset -8
	popq %rdi
	.cfi_adjust_cfa_offset -8
	jmp *%rax
	.cfi_endproc
	.size fairlead_dlsym, . - fairlead_dlsym
	.size fairlead_dlsym_2_2_5, . - fairlead_dlsym
	.size fairlead_dlsym_2_34, . - fairlead_dlsym
	.symver fairlead_dlsym_2_2_5, dlsym@GLIBC_2.2.5, remove
	.symver fairlead_dlsym_2_34, dlsym@@GLIBC_2.34, remove

	.section .note.GNU-stack, "", @progbits
