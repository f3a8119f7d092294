/*
 * Credentials: a child for each way to have some. Started as root it makes children of other users, with supplementary
 * groups, capability sets, securebits and no_new_privs; as an ordinary user it checks what it has.
 */
#include "check.h"
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void check(void) {
    char text[4096] = "", *o = text;
    static const char *lines[] = {"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs"};
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++) o += sprintf(o, "%s; ", status_line(lines[i]));
    same("credentials", "%ssecurebits %x, dumpable %d, keepcaps %d", text, prctl(PR_GET_SECUREBITS), prctl(PR_GET_DUMPABLE),
         prctl(PR_GET_KEEPCAPS));
}

static void capabilities(uint64_t effective, uint64_t permitted, uint64_t inheritable) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {
        {effective, permitted, inheritable}, {effective >> 32, permitted >> 32, inheritable >> 32}};
    must(!syscall(SYS_capset, &header, data));
}

#define CAP(name) (1ull << (name))

enum { KINDS = 7 };

static void become(int kind) {
    gid_t groups[] = {4711, 4712, 20, 1000000};
    switch (kind) {
        case 1: /* an ordinary user */
            must(!setgroups(4, groups) && !setresgid(2000, 2000, 2000) && !setresuid(1500, 1500, 1500));
            break;
        case 2: /* different real, effective, saved and file system ids */
            must(!setgroups(0, NULL) && !setresgid(1, 2, 3));
            setfsgid(4);
            must(!setresuid(1001, 0, 1003));
            setfsuid(1004);
            break;
        case 3: /* a user who kept capabilities */
            must(!prctl(PR_SET_KEEPCAPS, 1) && !setresgid(2000, 2000, 2000) && !setresuid(1500, 1500, 1500));
            capabilities(CAP(CAP_NET_ADMIN), CAP(CAP_NET_ADMIN) | CAP(CAP_KILL), CAP(CAP_NET_ADMIN));
            must(!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0));
            break;
        case 4: /* root with few capabilities and a small bounding set */
            for (int i = 0; i < 64; i++)
                if (i % 3 == 0) prctl(PR_CAPBSET_DROP, i);
            must(!prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_NOROOT | SECBIT_KEEP_CAPS_LOCKED));
            capabilities(0, CAP(CAP_CHOWN) | CAP(CAP_SYS_PTRACE), 0);
            break;
        case 5: /* never to gain privileges */
            must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !setresgid(3000, 3000, 3000) && !setresuid(3001, 3001, 3001));
            must(!prctl(PR_SET_DUMPABLE, 1));
            break;
        case 6: /* temporarily somebody else */
            must(!setegid(65534) && !seteuid(65534));
            break;
    }
}

int main(int argc, char **argv) {
    begin(argc, argv);
    int go[2], kinds = geteuid() ? 1 : KINDS;
    char name[4096];
    pid_t child[KINDS];
    must(!pipe(go));
    umask(0);
    snprintf(name, sizeof name, "%s", argv[1]);
    must(!close(open(name, O_WRONLY | O_CREAT | O_APPEND, 0666))); /* all may complain there */
    int answers[2];
    must(!pipe(answers));
    for (int i = 1; i < kinds; i++) {
        must((child[i] = fork()) >= 0);
        if (!child[i]) {
            close(answers[0]);
            close(go[1]);
            become(i);
            check();
            for (char byte; read(go[0], &byte, 1) == 1;) {
                check();
                must(write(answers[1], &byte, 1) == 1);
            }
            check();
            _exit(10 + i);
        }
    }
    close(answers[1]);
    close(go[0]);
    while (!stopped()) {
        check();
        if (kinds > 1) {
            must(write(go[1], "123456", kinds - 1) == kinds - 1);
            char byte;
            for (int i = 1; i < kinds; i++) must(read(answers[0], &byte, 1) == 1);
        }
        tick();
        rest(3);
    }
    close(go[1]);
    for (int i = 1; i < kinds; i++) {
        int status;
        must(waitpid(child[i], &status, 0) == child[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 10 + i) fail("child %d ended with wait status %x", i, status);
    }
    return done();
}
