/*
 * Runs a program with the system calls of Linux 3.13 (Ubuntu 14.04): `linux-3.13 PROGRAM [ARG...]`. Newer calls return
 * ENOSYS, as on that kernel; newer arguments of older calls return the errors of that kernel. All children inherit the
 * filter, and no process can remove it. For x86-64; needs no library.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The number of finit_module. The next one, sched_setattr (314), came with 3.14. */
#define NEWEST_CALL 313
/*
 * Without getrandom, OpenSSL waits until /dev/random is seeded, but only where uname reports such an old kernel. A
 * filter cannot change the result of uname. Instead this segment exists, by which one process tells the others that it
 * has waited (OPENSSL_RAND_SEED_DEVRANDOM_SHM_ID in OpenSSL's crypto.h).
 */
#define SEEDED_SEGMENT 114
#define ANY 0xffff

/* The call `number` fails with `error` when argument `index` is in the range, and the second argument is `level`. */
struct rule {
  unsigned number, index, from, to, error, level;
};

static const struct rule rules[] = {
  {SYS_madvise, 2, 8, 8, EINVAL, ANY},              /* MADV_FREE: 4.5 */
  {SYS_madvise, 2, 18, 99, EINVAL, ANY},            /* MADV_WIPEONFORK and later: 4.14 */
  {SYS_prctl, 0, 41, 0x53564d41, EINVAL, ANY},      /* PR_SET_THP_DISABLE: 3.15, PR_SET_VMA: 5.17 */
  {SYS_fcntl, 1, 36, 38, EINVAL, ANY},              /* F_OFD_SETLK: 3.15 */
  {SYS_fcntl, 1, 1033, 1099, EINVAL, ANY},          /* F_ADD_SEALS: 3.17 */
  {SYS_futex, 1, 13, 127, ENOSYS, ANY},             /* FUTEX_LOCK_PI2: 5.14 */
  {SYS_fallocate, 1, 4, 0xffff, EOPNOTSUPP, ANY},   /* FALLOC_FL_COLLAPSE_RANGE: 3.15 */
  {SYS_mremap, 3, 4, 0xff, EINVAL, ANY},            /* MREMAP_DONTUNMAP: 5.7 */
  {SYS_waitid, 0, 3, 0xff, EINVAL, ANY},            /* P_PIDFD: 5.4 */
  {SYS_unshare, 0, 0x02000000, 0x03ffffff, EINVAL, ANY}, /* CLONE_NEWCGROUP: 4.6 */
  {SYS_ioctl, 1, 0x40049409, 0x40049409, ENOTTY, ANY},   /* FICLONE: 4.5 */
  {SYS_socket, 0, 41, 0xff, EAFNOSUPPORT, ANY},     /* AF_KCM: 4.6 */
  {SYS_setsockopt, 2, 48, 0xff, ENOPROTOOPT, 1},    /* SOL_SOCKET: SO_BPF_EXTENSIONS: 3.14 */
  {SYS_setsockopt, 2, 26, 0xff, ENOPROTOOPT, 6},    /* IPPROTO_TCP: TCP_CC_INFO: 4.1 */
};

#define RULES (sizeof rules / sizeof *rules)
#define ARGUMENT(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#define LOAD(offset) ((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset)))
#define ANSWER(value) ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (value)))
#define JUMP(test, value, yes, no) ((struct sock_filter)BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), (yes), (no)))

int main(int argc, char **argv) {
  struct sock_filter code[8 + 8 * RULES];
  unsigned short n = 0;
  if (argc < 2) return fprintf(stderr, "usage: linux-3.13 PROGRAM [ARG...]\n"), 64;
  code[n++] = LOAD(offsetof(struct seccomp_data, arch));
  code[n++] = JUMP(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
  code[n++] = ANSWER(SECCOMP_RET_ERRNO | ENOSYS);
  code[n++] = LOAD(offsetof(struct seccomp_data, nr));
  code[n++] = JUMP(BPF_JGT, NEWEST_CALL, 0, 1);
  code[n++] = ANSWER(SECCOMP_RET_ERRNO | ENOSYS);
  for (const struct rule *rule = rules; rule < rules + RULES; rule++) {
    code[n++] = LOAD(offsetof(struct seccomp_data, nr));
    code[n++] = JUMP(BPF_JEQ, rule->number, 0, 6);
    code[n++] = LOAD(ARGUMENT(1));
    code[n++] = rule->level == ANY ? JUMP(BPF_JA, 0, 0, 0) : JUMP(BPF_JEQ, rule->level, 0, 4);
    code[n++] = LOAD(ARGUMENT(rule->index));
    code[n++] = JUMP(BPF_JGE, rule->from, 0, 2);
    code[n++] = JUMP(BPF_JGT, rule->to, 1, 0);
    code[n++] = ANSWER(SECCOMP_RET_ERRNO | rule->error);
  }
  code[n++] = ANSWER(SECCOMP_RET_ALLOW);
  if (shmget(SEEDED_SEGMENT, 1, IPC_CREAT | 0444) < 0) return perror("linux-3.13: shmget"), 71;
  struct sock_fprog program = {n, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    return perror("linux-3.13: the filter"), 71;
  execvp(argv[1], argv + 1);
  return perror(argv[1]), 127;
}
