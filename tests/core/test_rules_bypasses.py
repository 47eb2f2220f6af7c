"""Lines that once ran unasked what a rule was to prevent. Each of them was tried with a real shell."""

from __future__ import annotations

import pytest

from trunkline.base.vocabulary import Mode
from trunkline.core.approvals import Policy
from trunkline.core.events import ToolRequested
from trunkline.core.rules import Rules


def verdict(command: str, mode: Mode = "default", **abouts: tuple[str, ...]) -> str:
    rules = {kind: tuple(f"Bash({about})" for about in found) for kind, found in abouts.items()}
    policy = Policy(mode, allow=(), rules=Rules(**rules), workspace="/nowhere")  # type: ignore[arg-type]
    return policy.judge(ToolRequested("c1", "Bash", "exec", {"command": command})).verdict


def denies(rule: str, command: str) -> str:
    """What becomes of a command in the mode that allows everything else."""
    return verdict(command, "yolo", deny=(rule,))


def allows(command: str, *programs: str) -> str:
    """What becomes of a command if these programs are allowed."""
    return verdict(command, allow=tuple(f"{program}:*" for program in programs))


@pytest.mark.parametrize(
    "command",
    [
        # A line that goes on is no quote, and two halves of an operator are one.
        "cat <<E\\\nOF\n$(touch x)\nEOF",
        "cat <<\\\nEOF\n$(touch x)\nEOF",
        "cat << \\\nEOF\n$(touch x)\nEOF",
        "cat <\\\n<cat\necho '$(touch x)'\ncat",
        "cat <<\\\n-E\n\tE\n",
        "cat <\\\n(echo)",
        "cat |\\\n& echo",
        "cat &\\\n& echo",
        "for echo in 'a[$(touch x)]'; do cat $(\\\n(echo)); done",
        "for echo in 'a[$(touch x)]'; do (\\\n(echo)); done",
        "cat $\\\n(touch x)",
        "cat ${x\\\n:=$(touch x)}",
        "cat 2\\\n>f",
        # A substitution has here-documents of its own.
        "cat <<'cat' $(cat <<'cat b'\ncat b\ntouch x\ncat\ncat b\n)\ncat",
        "cat <<'cat' <(cat <<'cat b'\ncat b\ntouch x\ncat\ncat b\n)\ncat",
        "cat <<'cat' \"$(cat <<'cat b'\ncat b\ntouch x\ncat\ncat b\n)\"\ncat",
        # To `sh`, the `$` belongs to the name of the end, and to what is run.
        "cat <<$'EOF'\n$EOF\ntouch x\nEOF",
        'cat <<$"EOF"\n$EOF\ntouch x\nEOF',
        "cat <<E$x\nE\ntouch x\nE$x",
        "eval $'echo touch x'",
        "$'echo' x",
        "bash -c $\"cat touch\"",
    ],
)  # fmt: skip
def test_a_line_that_shells_read_otherwise_is_not_allowed(command: str) -> None:
    assert allows(command, "cat", "echo", "eval", "bash") == "ask"
    assert denies("touch:*", command) != "allow" or "touch" not in command


@pytest.mark.parametrize(
    "command",
    [
        "cat a \\\n  --number \\\n  b", "cat a &&\\\n cat b", "cat a \\\n| cat", "cat\\\n a", "ca\\\nt a",
        "cat \"a\\\nb\"", "cat <<EOF | cat\n$(echo a)\nEOF", "cat <<'EOF'\n$(touch x)\nEOF", "cat <<-\\EOF\n\tx\n\tEOF",
        'cat <<"E F"\nE F',
        "cat \"$(cat <<'EOF'\nit is (not) closed\nEOF\n)\"", "echo $'a\\tb' $\"c\"", "if cat\\\n a; then echo; fi",
    ],
)  # fmt: skip
def test_a_line_that_goes_on_as_people_write_it_is_allowed(command: str) -> None:
    assert allows(command, "cat", "echo") == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git $X push origin HEAD", "git $@ push", "git pu$@sh origin", "git pus${x}h origin", "git {push,origin,HEAD}",
        "git pu{sh,} origin", "touch push; git pus? origin", 'git "$x"', "git -C \"$d\" $c", "git $(echo push)",
        "x='y push'; git -C $x status", "git $x$y", "git *", "git pu[rs]h",
    ],
)  # fmt: skip
def test_what_could_be_the_words_of_a_rule_is_asked_about(command: str) -> None:
    assert denies("git push:*", command) == "ask"
    assert verdict(command, "yolo", ask=("git push:*",)) == "ask"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git * --force", "git push $x"),
        ("git * --force", "git push origin --f*"),
        ("npm run deploy", "npm run $x"),
        ("npm run deploy", "npm $x"),
        ("rm -rf:*", "rm $x"),
        ("rm -rf:*", "rm *"),
    ],
)
def test_so_it_is_for_rules_of_every_kind(rule: str, command: str) -> None:
    assert denies(rule, command) == "ask"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git push:*", 'git -C "$d" status'),
        ("git push:*", 'git commit -m "$x"'),
        ("git push:*", "git add *.py {a,b} $x"),
        ("git push:*", "git log $(git merge-base a b)"),
        ("git push:*", "git $'status'"),
        ("git * --force", "git add *.py"),
        ("git * --force", "ls $x"),
        ("npm run deploy", 'npm run test "$x"'),
        ("rm -rf:*", "rm *.o"),
    ],
)
def test_what_cannot_be_the_words_of_a_rule_is_not(rule: str, command: str) -> None:
    assert denies(rule, command) == "allow"


WRAPPERS = (
    "env",
    "xargs",
    "cat",
    "grep",
    "echo",
    "nice",
    "timeout",
    "command",
    "sudo",
    "find",
    "flock",
    "setarch",
    "chrt",
    "ssh",
)


@pytest.mark.parametrize(
    "command",
    [
        "env -u cat touch x", "env --unset cat touch x", "env --uns cat touch x", "env -C cat touch x",
        "echo x | xargs -I grep touch grep", "echo a | xargs -E cat touch x", "echo x | xargs -d cat touch",
        "echo x | xargs -I cat cat x", "echo x | xargs -I{} {} y", "sudo -U cat touch x", "nice --cat touch x",
        "timeout cat touch x", "timeout -k 5 cat touch x", "flock cat touch x", "flock cat -c touch",
        "find . -exec {} +", "setarch -R touch cat", "chrt -o touch cat", "ssh cat touch x",
    ],
)  # fmt: skip
def test_the_value_of_an_option_is_not_taken_for_the_command(command: str) -> None:
    assert allows(command, *WRAPPERS) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "env -i cat x", "env -u A cat x", "nice -n 5 cat x", "nice -5 cat x", "xargs -n 1 grep x",
        "xargs -0 -n1 grep 'a b'",
        "xargs -I{} cat {}", "timeout 5 grep \"it's\" f", "sudo -u root cat x", 'sudo -u "$USER" cat x', "env -- cat x",
        "timeout -s KILL 5 cat x", "timeout --signal=KILL 5 cat x", "command cat x", "find . -exec cat {} +",
        "flock -n f cat x",
    ],
)  # fmt: skip
def test_behind_known_options_the_command_is_found(command: str) -> None:
    assert allows(command, *WRAPPERS) == "allow"
    assert allows(command.replace("cat", "touch").replace("grep", "touch"), *WRAPPERS) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        'x=r y=m; command eval "$x$y victim"', 'x=r y=m; builtin eval "$x$y victim"',
        'x=r y=m; time eval "$x$y victim"',
        "command . /dev/stdin <<< \"$(printf 'r\\155 victim')\"", "echo a victim | nice xargs env",
        "timeout 5 env '-Srm\\_victim'", "env '--s=rm\\_victim'", "printf 'r\\155 victim' | xargs -I% sh -c %",
        "printf 'r\\155 victim' | xargs -i sh -c {}", "printf 'r\\155 victim' | xargs --replace=Q Q",
        "b=$(echo cVskKHJtIHZpY3RpbSldCg== | base64 -d); a[b]=1", "printf 'r\\155 victim' | parallel",
        "declare -i x; b=$(cat f); x=$b", 'builtin trap "$(cat f)" EXIT', 'nice find . -exec $x$y z ";"',
        "printf 'r\\155 x' | chroot .", 'flock f -c "$x$y z"', 'ssh localhost "$x$y z"', "fd . -x {}", "sudo -s < f",
        'find . -exec {} z ";"', "nice at now < f",
    ],
)  # fmt: skip
def test_what_is_not_certain_inside_of_another_command_is_not_certain(command: str) -> None:
    assert denies("rm:*", command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "A\\\n=1 rm victim",
        "cat <<'cat' $(cat <<'cat b'\ncat b\nrm victim\ncat\ncat b\n)\ncat",
        # The value of an option, in the next word, too.
        "split --filter 'rm victim' f", "tar --to-command 'rm victim' -xf t.tar", "sort --compress-program rm f",
        "git ls-remote --upload-pack 'rm victim;' .", "git -c diff.external='rm victim;' diff --no-index a b",
        "git -c core.fsmonitor=rm status", "git rebase -x'rm x' HEAD~1", "git filter-branch --tree-filter 'rm x'",
        "git grep -O'rm x' y", "git config alias.z '!rm x'", "docker run --entrypoint rm alpine x", "rg --pre rm x",
        "go test -exec 'rm x'", "fzf --preview 'rm x'", "nc -e /bin/rm",
        # Interpreters.
        "python3 -W ignore -c 'import os; os.system(\"rm victim\")'", "perl -I lib -e 'system(\"rm victim\")'",
        "python3 $@ -c 'import os; os.system(\"rm victim\")'",
        # Wrappers.
        "x86_64 rm victim", "i386 rm victim", "choom -n 0 rm victim", "ssh-agent rm victim", "uclampset -m 0 rm victim",
        "systemd-inhibit rm victim", "ifne rm victim", "gfind . -exec rm {} +", "pee 'rm victim'",
    ],
)  # fmt: skip
def test_what_is_plainly_written_is_denied(command: str) -> None:
    assert denies("rm:*", command) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "sed '1e rm victim' f", "sed '1erm victim' f", "sed 's/x/rm y/e' f", "vim -c '!rm x'", "ed f <<< '!rm x'",
        "gdb -batch -ex 'shell rm x'", "sqlite3 :memory: '.shell rm x'", "psql -c '\\! rm x'", "less '+!rm x' f",
        "ssh host <<E\nrm x\nE", "make 'X=$(shell rm x)'", "dc -e '!rm x'",
    ],
)  # fmt: skip
def test_a_text_in_which_the_words_of_a_rule_stand_is_asked_about(command: str) -> None:
    assert denies("rm:*", command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "git -c alias.p=push p", "git -c alias.p='push --force' p", "git -C x -c ALIAS.p=push p origin",
        "git config alias.p push", "git config --global --add alias.p 'push --force'", "git config set alias.p push",
        "git -c alias.p='!git push' p", "env git -c alias.p=push p",
    ],
)  # fmt: skip
def test_another_name_in_git_is_what_it_stands_for(command: str) -> None:
    assert denies("git push:*", command) == "deny"
    assert denies("git fetch:*", command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p",
        "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push; git p",
        "env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p",
        "GIT_CONFIG_PARAMETERS=\"'alias.p=push'\" git p", "GIT_CONFIG_GLOBAL=words git p",
        "A=push git --config-env=alias.p=A p", "export A=push; git --config-env alias.p=A p",
        "sudo A=push git --config-env=alias.p=A p",
    ],
)  # fmt: skip
def test_a_configuration_of_git_in_the_environment_is_asked_about(command: str) -> None:
    assert denies("git push:*", command) == "ask"
    assert verdict(command, "yolo") == "allow"


@pytest.mark.parametrize("command", ["own-wrapper git push", "a b /usr/bin/git -C x push", "mytool 'git push'"])
def test_so_are_several_words_of_a_rule_among_others(command: str) -> None:
    assert denies("git push:*", command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "echo 'rm x; git push'", "git commit -m 'do not rm x, git push'", "grep -rn 'git push' .",
        "git log --grep 'rm x'",
        "gh pr create --body 'we rm x and git push'", "cat > run.sh <<'EOF'\nrm x\ngit push\nEOF", "echo git push",
        "git commit -m \"$(cat <<'EOF'\nDo not git push; rm it\nEOF\n)\"", "sed -i 's/perm/x/' f", "make rm",
        "git rm x",
        'git -C "$d" commit -m "rm x"', "docker rm x", "docker run --rm -v \"$PWD:/w\" img make", "which rm",
        "jq .rm f",
        "sudo apt-get install -y zsh", "timeout 60 make test", "env FOO=1 make",
        "find . -xdev -name '*.py' | xargs wc -l",
        "ls | xargs -I{} cp {} /tmp", "strace -f ls .", "ssh host ls .", "npx --yes tsc -p .", "uv run pytest -q",
        "sudo -E env PYTHONPATH=. make", "exec 3>&1", "i=0; a[i]=1", "git --no-pager log", "time pytest -q",
    ],
)  # fmt: skip
def test_everyday_lines_are_not_asked_about(command: str) -> None:
    assert verdict(command, "yolo", deny=("rm:*", "git push:*")) == "allow"
