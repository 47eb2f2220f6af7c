// The echo of the Tryll benchmark that is not written in Python: what comes goes back as it is, one core, epoll.
// Writes its port on a line, and serves until its standard input ends.

#include <arpa/inet.h>
#include <cstdio>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int add(int poll, int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    return epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

int main() {
    static char buffer[1 << 18];
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    sockaddr *where = reinterpret_cast<sockaddr *>(&address);
    if (bind(listening, where, length) || listen(listening, 1024) || getsockname(listening, where, &length)) return 1;
    std::printf("%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
    int poll = epoll_create1(0);
    if (add(poll, listening) || add(poll, STDIN_FILENO)) return 1;
    epoll_event ready[64];
    for (;;) {
        int count = epoll_wait(poll, ready, 64, -1);
        for (int number = 0; number < count; number++) {
            int fd = ready[number].data.fd;
            if (fd == listening) {
                int made = accept(listening, nullptr, nullptr), on = 1;
                setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                if (add(poll, made)) return 1;
                continue;
            }
            ssize_t got = read(fd, buffer, sizeof buffer);
            if (fd == STDIN_FILENO && got <= 0) return 0;
            // The sockets block: a client that does not read stops everybody, which the benchmark's does not do.
            for (ssize_t done = 0, sent; done < got; done += sent)
                if ((sent = write(fd, buffer + done, got - done)) <= 0) break;
            if (got <= 0) close(fd);
        }
    }
}
