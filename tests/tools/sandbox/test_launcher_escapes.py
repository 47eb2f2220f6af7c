"""Every way out that we could think of, tried from inside."""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import socket
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.tools.sandbox.conftest import Run
from trunkline.tools.tool import ToolOutput

pytestmark = pytest.mark.process

#: What a program says that was refused something.
REFUSALS = (
    "Read-only file system", "Permission denied", "Operation not permitted", "Invalid cross-device link",
    "Function not implemented", "Device or resource busy", "No such process",
)  # fmt: skip

#: The prelude of programs that call the kernel by themselves.
KERNEL = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(done):
    if done is not None and done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    print("DONE", done)
"""


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(KERNEL + code)}"


def assert_refused(output: ToolOutput) -> None:
    assert output.status == "error", output.text
    assert "DONE" not in output.text
    assert any(words in output.text for words in REFUSALS), output.text


def assert_hidden(output: ToolOutput) -> None:
    """Refused, or nobody knows of such a process."""
    if "No such file or directory" not in output.text:
        assert_refused(output)
    assert output.status == "error"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of somebody's, beside the workspace and on the same disk."""
    made = tmp_path / "outside.txt"
    made.write_text("mine\n")
    return made


def is_untouched(path: Path) -> bool:
    return path.read_text() == "mine\n"


def looked_at(path: os.PathLike[str]) -> tuple[int, float, int, int]:
    found = os.stat(path)
    return found.st_mode, found.st_mtime, found.st_size, found.st_uid


def landlock() -> int:
    """The version of Landlock's interface."""
    return int(ctypes.CDLL(None).syscall(444, None, 0, 1))


class TestFiles:
    async def test_a_write_outside_fails_in_the_command_and_the_result_says_why(
        self, run: Run, outside: Path, workspace: Path
    ) -> None:
        output = await run(f"echo theirs > {outside}")
        assert_refused(output)
        assert "[The sandbox was why: a command may write only in " + str(workspace) in output.text
        assert is_untouched(outside)

    async def test_no_file_is_made_outside(self, run: Run, tmp_path: Path) -> None:
        for command in (f"touch {tmp_path}/new", f"mkdir {tmp_path}/new", f"ln -s x {tmp_path}/new", "touch ../new"):
            assert_refused(await run(command))
        assert not (tmp_path / "new").exists()

    async def test_home_and_the_common_directory_for_temporary_files_are_outside(self, run: Run) -> None:
        Path.home().mkdir(exist_ok=True)
        assert_refused(await run('touch "$HOME/.trunkline-sandbox-escape"'))
        assert_refused(await run("touch /tmp/.trunkline-sandbox-escape /var/tmp/.trunkline-sandbox-escape"))

    @pytest.mark.parametrize(
        "command",
        [
            "rm -f {}",
            "mv {} moved",
            "truncate -s 0 {}",
            "chmod 777 {}",
            "touch -d 2000-01-01 {}",
            "chown 1 {}",
            "mv {} {}.moved",
            "cp /etc/hostname {}",
        ],
    )
    async def test_nothing_changes_what_lies_outside(self, run: Run, outside: Path, command: str) -> None:
        before = looked_at(outside)
        assert_refused(await run(command.format(outside, outside)))
        assert looked_at(outside) == before

    async def test_a_link_leads_out_for_reading_only(self, run: Run, outside: Path, workspace: Path) -> None:
        (workspace / "link").symlink_to(outside)
        (workspace / "up").symlink_to(outside.parent)
        assert_refused(await run("echo theirs > link"))
        assert_refused(await run("echo theirs > up/outside.txt"))
        assert_refused(await run(f"ln -s {outside} made && echo theirs > made"))
        assert "mine" in (await run("cat link")).text
        assert is_untouched(outside)

    async def test_a_hard_link_brings_nothing_in(self, run: Run, outside: Path, workspace: Path) -> None:
        assert_refused(await run(f"ln {outside} mine && echo theirs > mine"))
        assert_refused(await run(python(f"os.link({str(outside)!r}, 'mine')")))
        assert is_untouched(outside)

    async def test_nothing_is_moved_out(self, run: Run, tmp_path: Path, workspace: Path) -> None:
        (workspace / "inside").touch()
        assert_refused(await run(f"mv inside {tmp_path}/out"))
        assert_refused(await run(python(f"os.rename('inside', {str(tmp_path / 'out')!r})")))
        assert_refused(await run(f"mv {workspace} {tmp_path}/away"))
        assert not (tmp_path / "out").exists()

    async def test_a_directory_that_is_open_leads_nowhere_else(self, run: Run, outside: Path) -> None:
        code = f"fd = os.open({str(outside.parent)!r}, os.O_PATH); os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=fd)"
        assert_refused(await run(python(code)))

    async def test_settings_of_the_kernel_cannot_be_written(self, run: Run) -> None:
        assert_refused(await run("echo x > /proc/sys/kernel/core_pattern"))
        assert_refused(await run("for f in /sys/kernel/*; do echo 1 > $f && exit 0; done; exit 1"))

    async def test_no_device_is_made(self, run: Run) -> None:
        assert_refused(await run("mknod disk b 7 0"))
        assert_refused(await run("mknod memory c 1 1"))


class TestProc:
    async def test_its_own_root_is_as_walled_in(self, run_anywhere: Run, outside: Path) -> None:
        for place in ("/proc/self/root", "/proc/self/cwd/../../../../../../../..", "/proc/thread-self/root"):
            assert_refused(await run_anywhere(f"echo theirs > {place}{outside}"))

    @pytest.mark.parametrize("name", ["root/etc/hostname", "environ", "mem", "cwd/x", "fd/0", "maps", "ns/mnt"])
    async def test_the_agent_cannot_be_looked_into(self, run_anywhere: Run, name: str) -> None:
        assert_hidden(await run_anywhere(f"cat /proc/{os.getpid()}/{name} > /dev/null"))

    async def test_nothing_is_written_through_the_agent(self, run_anywhere: Run, outside: Path) -> None:
        assert_hidden(await run_anywhere(f"echo theirs > /proc/{os.getpid()}/root{outside}"))
        assert_hidden(await run_anywhere(f"echo 1000 > /proc/{os.getpid()}/oom_score_adj"))
        assert is_untouched(outside)

    async def test_nor_is_the_first_process_looked_into(self, run_anywhere: Run) -> None:
        assert_refused(await run_anywhere("cat /proc/1/environ"))

    async def test_only_processes_of_the_session_are_seen(self, run: Run) -> None:
        seen = (await run("cat /proc/[0-9]*/comm")).text.split("STDERR")[0].split()[4:]
        # The first process of the namespace, the shell and what it runs.
        assert 2 <= len(seen) <= 4
        assert "cat" in seen


class TestProcesses:
    async def test_nobody_outside_is_signalled(self, run_anywhere: Run) -> None:
        if landlock() < 6:
            pytest.skip("this kernel's Landlock does not know signals")
        assert_refused(await run_anywhere(f"kill -0 {os.getpid()}"))
        assert_refused(await run_anywhere(f"kill -TERM {os.getppid()}"))

    async def test_the_first_process_of_the_session_stays(self, run: Run) -> None:
        kill = "for number in INT TERM HUP CHLD KILL; do kill -$number 1; done; echo DONE"
        assert "DONE" in (await run(kill)).text
        assert "DONE" in (await run("kill -KILL -1; echo DONE")).text
        assert "DONE" in (await run("echo DONE")).text

    async def test_nobody_is_traced_or_read(self, run_anywhere: Run) -> None:
        assert_refused(await run_anywhere(python(f"call(libc.ptrace(16, {os.getpid()}, None, None))")))
        assert_refused(await run_anywhere(python("call(libc.ptrace(0, 0, None, None))")))
        read = python(f"call(libc.process_vm_readv({os.getpid()}, None, 0, None, 0, 0))")
        assert_refused(await run_anywhere(read))

    async def test_the_limits_of_others_stay(self, run_anywhere: Run) -> None:
        code = f"import resource; print('DONE', resource.prlimit({os.getpid()}, resource.RLIMIT_CPU, (1, 1)))"
        assert_refused(await run_anywhere(f"{sys.executable} -c {shlex.quote(code)}"))
        assert (await run_anywhere("ulimit -t 100 && ulimit -t")).status == "success"

    async def test_no_descriptor_of_others_is_had(self, run_anywhere: Run) -> None:
        code = f"fd = os.pidfd_open({os.getpid()}); call(libc.syscall(438, fd, 0, 0))"
        assert_refused(await run_anywhere(python(code)))


class TestNamespaces:
    async def test_nothing_is_mounted(self, run: Run, workspace: Path) -> None:
        (workspace / "place").mkdir()
        assert_refused(await run(python("call(libc.mount(b'none', b'place', b'tmpfs', 0, None))")))
        assert_refused(await run(python("call(libc.mount(b'/', b'place', None, 4096, None))")))
        assert_refused(await run(python("call(libc.umount2(b'/dev/shm', 2))")))
        assert_refused(await run(python("call(libc.syscall(428, -100, b'/', 1))")))
        assert_refused(await run(python("call(libc.chroot(b'/'))")))

    @pytest.mark.parametrize("flags", [0x10000000, 0x10020000, 0x40000000, 0x20000000])
    async def test_there_are_no_further_namespaces(self, run: Run, flags: int) -> None:
        assert_refused(await run(python(f"call(libc.unshare({flags}))")))

    @pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of the call is that of another processor")
    async def test_nor_by_making_a_process(self, run: Run) -> None:
        assert_refused(await run(python("call(libc.syscall(56, 0x10000011, 0, 0, 0, 0))")))
        assert_refused(await run(python("call(libc.syscall(435, None, 0))")))

    async def test_those_of_others_are_not_entered(self, run: Run) -> None:
        assert_refused(await run(python("fd = os.open('/proc/self/ns/net', 0); call(libc.setns(fd, 0))")))

    async def test_there_is_no_right_left(self, run: Run) -> None:
        text = (await run("grep -E 'Cap|NoNewPrivs|Seccomp:' /proc/self/status")).text
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert f"{name}:\t0000000000000000" in text
        assert "NoNewPrivs:\t1" in text
        assert "Seccomp:\t2" in text


class TestKernel:
    @pytest.mark.parametrize(
        "call",
        [
            "425, 1, bytes(120)",  # io_uring_setup, which knows ways around the filter
            "437, -100, b'.', None, 0",  # openat2
            "430, b'tmpfs', 0",  # fsopen
            "442, -100, b'/', 0, bytes(32), 32",  # mount_setattr
        ],
    )
    async def test_calls_that_lead_around_the_filter_are_missing(self, run: Run, call: str) -> None:
        assert_refused(await run(python(f"call(libc.syscall({call}))")))

    @pytest.mark.skipif(
        platform.machine() != "x86_64", reason="the numbers of the calls are those of another processor"
    )
    @pytest.mark.parametrize(
        "call",
        [
            "250, 0, -3, 0",  # keyctl
            "321, 0, None, 0",  # bpf
            "298, None, 0, -1, -1, 0",  # perf_event_open
            "304, -100, bytes(16), 0",  # open_by_handle_at
            "175, None, 0, None",  # init_module
            "246, 0, 0, None, 0",  # kexec_load
            "0x40000000 + 39",  # getpid, of the x32 kind
        ],
    )
    async def test_calls_into_the_kernel_are_refused(self, run: Run, call: str) -> None:
        assert_refused(await run(python(f"call(libc.syscall({call}))")))

    @pytest.mark.skipif(platform.machine() != "x86_64", reason="another processor has no older calls")
    async def test_calls_of_the_older_architecture_end_the_process(self, run: Run) -> None:
        # mov eax, 20 (getpid); int 0x80; ret
        code = r"""
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
call(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""
        output = await run(python(code))
        assert "DONE" not in output.text
        assert "SIGSYS" in output.text

    async def test_nothing_is_typed_into_a_terminal(self, run: Run) -> None:
        code = "import fcntl, pty; master, slave = pty.openpty(); fcntl.ioctl(slave, 0x5412, b'x'); print('DONE')"
        assert_refused(await run(f"{sys.executable} -c {shlex.quote(code)}"))


class TestSetuid:
    async def test_no_program_becomes_one(self, run: Run, workspace: Path) -> None:
        (workspace / "program").write_text("#!/bin/sh\n")
        assert_refused(await run("chmod u+s program"))
        assert_refused(await run(python("os.fchmod(os.open('program', 0), 0o4755); print('DONE')")))
        assert_refused(await run(python("os.open('new', os.O_CREAT | os.O_WRONLY, 0o4755); print('DONE')")))
        assert_refused(await run(python("os.mknod('other', 0o104755); print('DONE')")))
        assert_refused(await run(python("os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755); print('DONE')")))
        assert not any(looked_at(entry)[0] & stat.S_ISUID for entry in os.scandir(workspace))

    async def test_one_that_is_there_runs_as_whoever_calls_it(self, run: Run, workspace: Path) -> None:
        """It would have rights again, and is root's where we are."""
        shutil.copy("/bin/cat", workspace)
        (workspace / "cat").chmod(0o4755)
        text = (await run("./cat /proc/self/status")).text
        assert "CapEff:\t0000000000000000" in text
        assert "NoNewPrivs:\t1" in text

    async def test_nobody_becomes_somebody_else(self, run: Run) -> None:
        assert (await run(python("os.setuid(12345); print('DONE')"))).status == "error"


class TestNetwork:
    async def test_unix_sockets_outside_cannot_be_reached(self, run: Run, tmp_path: Path, workspace: Path) -> None:
        for place in (tmp_path, workspace):
            path = f"{place}/s"
            with closing(socket.socket(socket.AF_UNIX)) as listening:
                listening.bind(path)
                listening.listen()
                assert_refused(await run(python(f"s = socket.socket(socket.AF_UNIX); call(s.connect({path!r}))")))

    async def test_nor_those_without_a_path(self, run: Run) -> None:
        with closing(socket.socket(socket.AF_UNIX)) as listening:
            listening.bind("\0trunkline-sandbox-test")
            listening.listen()
            code = "call(socket.socket(socket.AF_UNIX).connect('\\0trunkline-sandbox-test'))"
            assert_refused(await run(python(code)))

    async def test_nor_by_half_of_a_pair(self, run: Run, workspace: Path) -> None:
        """One for datagrams could write to any socket that has a path."""
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as listening:
            listening.bind(str(workspace / "s"))
            send = "a.sendto(b'out', 's'); print('DONE')"
            assert_refused(await run(python(f"a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); {send}")))
            assert (await run(python(f"a, b = socket.socketpair(); {send}"))).status == "error"
            listening.setblocking(False)
            with pytest.raises(BlockingIOError):
                listening.recv(10)

    async def test_a_server_of_this_machine_cannot_be_reached(self, run: Run) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as server:
            port = server.getsockname()[1]
            output = await run(python(f"socket.create_connection(('127.0.0.1', {port}), 5); print('DONE')"))
            assert "Connection refused" in output.text
            assert "The sandbox may be why" in output.text

    async def test_no_datagram_leaves(self, run: Run) -> None:
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as server:
            server.bind(("127.0.0.1", 0))
            port = server.getsockname()[1]
            await run(python(f"socket.socket(type=socket.SOCK_DGRAM).sendto(b'out', ('127.0.0.1', {port}))"))
            server.setblocking(False)
            with pytest.raises(BlockingIOError):
                server.recv(10)

    async def test_there_is_no_way_to_other_machines(self, run: Run) -> None:
        output = await run(python("socket.create_connection(('192.0.2.1', 80), 5); print('DONE')"))
        assert "Network is unreachable" in output.text
        assert "has no network" in output.text

    @pytest.mark.parametrize("family", ["17, 3", "40, 1", "38, 5", "16, 3, 9"])  # packets, virtual machines, ciphers
    async def test_other_families_of_sockets_are_refused(self, run: Run, family: str) -> None:
        assert_refused(await run(python(f"socket.socket({family}); print('DONE')")))


class TestThreads:
    async def test_what_a_thread_does_is_as_walled_in(self, run: Run, outside: Path) -> None:
        code = f"import threading; t = threading.Thread(target=open, args=({str(outside)!r}, 'w')); t.start(); t.join()"
        output = await run(f"{sys.executable} -c {shlex.quote(code)}")
        assert "Read-only file system" in output.text
        assert is_untouched(outside)
