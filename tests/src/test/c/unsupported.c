/*
 * Counts, and from the moment that the file PROGRESS.go exists holds one descriptor or resource of a kind; writes "holds".
 *
 * usage: unsupported PROGRESS KIND
 */
#include "check.h"
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <mqueue.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <arpa/inet.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Kills the program at any call that it does not need itself, such as one that somebody injects. */
static void confine(void) {
    static const int allowed[] = {SYS_openat, SYS_open, SYS_write, SYS_close, SYS_clock_nanosleep, SYS_access, SYS_faccessat, SYS_exit_group,
                                  SYS_getpid, SYS_restart_syscall, SYS_rt_sigreturn};
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter code[COUNT + 3];
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++)
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (unsigned char)(COUNT - i), 0);
    code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {COUNT + 3, code};
    must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* Hands getppid over to whoever reads the listener. */
static int supervised(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* A child in strict mode, which may read, write and exit, and ends when its parent does. */
static void strict(void) {
    int ends[2];
    must(!pipe(ends));
    if (fork()) return;
    close(ends[1]);
    must(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
    char byte;
    while (read(ends[0], &byte, 1) > 0) {
    }
    syscall(SYS_exit, 0);
}

static void *separate(void *unused) {
    must(!unshare(CLONE_FILES));
    for (;;) pause();
    return unused;
}

static int endure(void *unused) {
    (void)unused;
    for (;;) syscall(SYS_pause);
    return 0;
}

/* A child that shares something with its parent. */
static int relative(int flags) {
    static char stack[65536];
    return clone(endure, stack + sizeof stack, flags | SIGCHLD, NULL);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    must(argc == 3);
    const char *kind = argv[2];
    int fd = -1;
    char go[4200];
    snprintf(go, sizeof go, "%s.go", argv[1]);
    while (access(go, F_OK)) {
        tick();
        rest(2);
    }
    if (!strcmp(kind, "tcp")) {
        /* a connection to a process outside the tree, whose port the file PROGRESS.go tells */
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        address.sin_port = htons(atoi(content(go)));
        fd = socket(AF_INET, SOCK_STREAM, 0);
        must(!connect(fd, (struct sockaddr *)&address, sizeof address));
    } else if (!strcmp(kind, "netlink")) {
        fd = socket(AF_NETLINK, SOCK_RAW, 0);
    } else if (!strcmp(kind, "inotify")) {
        fd = inotify_init1(0);
    } else if (!strcmp(kind, "inotify-removed")) {
        char path[4200];
        snprintf(path, sizeof path, "%s.removed", argv[1]);
        must(open(path, O_RDWR | O_CREAT, 0644) >= 0);
        fd = inotify_init1(0);
        must(inotify_add_watch(fd, path, IN_MODIFY) == 1 && !unlink(path));
    } else if (!strncmp(kind, "mqueue", 6)) {
        struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 8};
        char name[64];
        snprintf(name, sizeof name, "/unsupported-%d", (int)getpid());
        fd = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
        must(fd >= 0 && !mq_unlink(name));
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
        if (!strcmp(kind, "mqueue-notify")) must(!mq_notify(fd, &event));
        else must(!mq_send(fd, "message", 8, 5));
    } else if (!strcmp(kind, "inotify-unread")) {
        fd = inotify_init1(0);
        must(inotify_add_watch(fd, "/", IN_ATTRIB) == 1 && !inotify_rm_watch(fd, 1));
    } else if (!strcmp(kind, "memfd")) {
        fd = memfd_create("memory", 0);
    } else if (!strcmp(kind, "deleted")) {
        char path[4200];
        snprintf(path, sizeof path, "%s.deleted", argv[1]);
        fd = open(path, O_RDWR | O_CREAT, 0644);
        must(write(fd, "still here", 10) == 10 && !unlink(path));
    } else if (!strcmp(kind, "shm")) {
        fd = 0;
        int id = shmget(IPC_PRIVATE, 4096, 0600);
        must(id >= 0 && shmat(id, NULL, 0) != (void *)-1);
        must(!shmctl(id, IPC_RMID, NULL));
    } else if (!strcmp(kind, "lock")) {
        char path[4200];
        snprintf(path, sizeof path, "%s.lock", argv[1]);
        fd = open(path, O_RDWR | O_CREAT, 0644);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        must(!fcntl(fd, F_SETLK, &lock));
    } else if (!strcmp(kind, "timer")) {
        fd = 0;
        timer_t timer;
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
        must(!timer_create(CLOCK_MONOTONIC, &event, &timer));
    } else if (!strcmp(kind, "timer-outside")) {
        fd = 0;
        clockid_t clock;
        timer_t timer;
        struct sigevent event = {.sigev_notify = SIGEV_NONE};
        must(!clock_getcpuclockid(1, &clock) && !timer_create(clock, &event, &timer));
    } else if (!strcmp(kind, "pidfd-outside")) {
        fd = syscall(SYS_pidfd_open, 1, 0);
    } else if (!strcmp(kind, "pidfd-gone")) {
        pid_t child = fork();
        if (!child) _exit(0);
        fd = syscall(SYS_pidfd_open, child, 0);
        must(waitpid(child, NULL, 0) == child);
    } else if (!strcmp(kind, "fanotify")) {
        fd = fanotify_init(FAN_CLASS_NOTIF, O_RDONLY);
    } else if (!strcmp(kind, "packet")) {
        fd = socket(AF_PACKET, SOCK_RAW, 0);
    } else if (!strcmp(kind, "userfaultfd")) {
        fd = syscall(SYS_userfaultfd, 1);
    } else if (!strcmp(kind, "io_uring")) {
        struct io_uring_params parameters = {0};
        fd = syscall(SYS_io_uring_setup, 4, &parameters);
    } else if (!strcmp(kind, "perf")) {
        struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attributes, .config = PERF_COUNT_SW_TASK_CLOCK};
        fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
    } else if (!strcmp(kind, "ptmx")) {
        fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    } else if (!strcmp(kind, "aio")) {
        fd = 0;
        aio_context_t context = 0;
        must(!syscall(SYS_io_setup, 8, &context));
    } else if (!strcmp(kind, "seccomp")) {
        fd = 0;
        confine();
    } else if (!strcmp(kind, "seccomp-supervisor")) {
        fd = supervised();
    } else if (!strcmp(kind, "seccomp-strict")) {
        fd = 0;
        strict();
    } else if (!strcmp(kind, "own-descriptors")) {
        fd = 0;
        pthread_t thread;
        must(!pthread_create(&thread, NULL, separate, NULL));
    } else if (!strcmp(kind, "shared-memory")) {
        fd = relative(CLONE_VM);
    } else if (!strcmp(kind, "shared-descriptors")) {
        fd = relative(CLONE_FILES);
    } else if (!strcmp(kind, "shared-directories")) {
        fd = relative(CLONE_FS);
    } else if (!strcmp(kind, "secret")) {
        int secret = syscall(SYS_memfd_secret, 0);
        must(secret >= 0 && !ftruncate(secret, 4096));
        must(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, secret, 0) != MAP_FAILED && !close(secret));
        fd = 0;
    } else if (!strcmp(kind, "mount-namespace")) {
        fd = unshare(CLONE_NEWNS);
    } else if (!strcmp(kind, "network-namespace")) {
        fd = unshare(CLONE_NEWNET);
    } else if (!strcmp(kind, "uts-namespace")) {
        fd = unshare(CLONE_NEWUTS);
    } else if (!strcmp(kind, "ipc-namespace")) {
        fd = unshare(CLONE_NEWIPC);
    } else if (!strcmp(kind, "pid-namespace")) {
        fd = unshare(CLONE_NEWPID);
        if (!fork())
            for (;;) pause();
    } else if (!strcmp(kind, "proc")) {
        fd = open("/proc/self/status", O_RDONLY);
        char text[64];
        must(read(fd, text, 64) == 64);
    } else if (!strcmp(kind, "deleted-directory")) {
        char path[4200];
        snprintf(path, sizeof path, "%s.deleted", argv[1]);
        must(!mkdir(path, 0755) && !chdir(path) && !rmdir(path));
        fd = 0;
    } else if (!strcmp(kind, "deleted-mapping")) {
        char path[4200];
        snprintf(path, sizeof path, "%s.deleted", argv[1]);
        int file = open(path, O_RDWR | O_CREAT, 0644);
        must(!ftruncate(file, 8192));
        char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        must(memory != MAP_FAILED && !unlink(path));
        close(file);
        strcpy(memory, "still here");
        fd = 0;
    } else if (!strcmp(kind, "deleted-program")) {
        char path[4200];
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
        must(n > 0);
        path[n] = 0;
        must(strstr(path, "deletable") && !unlink(path));
        fd = 0;
    } else if (!strcmp(kind, "flock")) {
        char path[4200];
        snprintf(path, sizeof path, "%s.lock", argv[1]);
        fd = open(path, O_RDWR | O_CREAT, 0644);
        must(!flock(fd, LOCK_EX));
    } else if (!strcmp(kind, "lease")) {
        char path[4200];
        snprintf(path, sizeof path, "%s.lease", argv[1]);
        fd = open(path, O_RDWR | O_CREAT, 0644);
        must(!fcntl(fd, F_SETLEASE, F_WRLCK));
    } else if (!strcmp(kind, "owner")) {
        int ends[2];
        must(!pipe(ends));
        fd = ends[0];
        must(!fcntl(fd, F_SETSIG, SIGURG) && !fcntl(fd, F_SETOWN, getpid()));
        must(!fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK));
    } else {
        fail("unknown kind %s", kind);
    }
    must(fd >= 0);
    report("holds");
    while (!stopped()) {
        tick();
        if (!strcmp(kind, "owner")) must(fcntl(fd, F_GETOWN) == getpid() && fcntl(fd, F_GETSIG) == SIGURG && fcntl(fd, F_GETFL) & O_ASYNC);
        rest(2);
    }
    return done();
}
