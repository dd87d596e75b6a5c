/*
 * The sandbox container's only process. It holds the pod's namespaces while the pod's containers come and go.
 *
 * As PID 1 of a shared PID namespace it inherits every orphan of the pod and must reap it, and the kernel drops each
 * signal that PID 1 neither handles nor blocks. Hence all three signals are blocked and fetched one by one: no handler,
 * no race between a handler and a wait.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION "unknown"
#endif

int main(int argc, char **argv)
{
    sigset_t awaited;

    if (argc > 1 && strcmp(argv[1], "-v") == 0) {
        puts("pause " VERSION);
        return 0;
    }
    if (getpid() != 1)
        fputs("pause: not PID 1, orphans of the pod go to another process\n", stderr);

    sigemptyset(&awaited);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, SIGINT);
    sigaddset(&awaited, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &awaited, NULL) != 0) {
        perror("pause: sigprocmask");
        return 1;
    }
    for (;;) {
        int signal_number = sigwaitinfo(&awaited, NULL);

        if (signal_number == SIGTERM || signal_number == SIGINT)
            return 0;
        if (signal_number < 0 && errno != EINTR) {
            perror("pause: sigwaitinfo");
            return 1;
        }
        /* One SIGCHLD may stand for several children. */
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}
